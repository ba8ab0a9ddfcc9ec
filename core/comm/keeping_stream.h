// A graph where the host does the work: the work itself, to be enqueued again. It is what a
// stand-in of NCCL is replayed with.
#ifndef LOCKSTEP_CORE_COMM_KEEPING_STREAM_H_
#define LOCKSTEP_CORE_COMM_KEEPING_STREAM_H_

#include <memory>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/device/native_stream.h"

namespace lockstep {

// Keeps what is enqueued, and runs nothing. Events and waits make it sick.
class KeepingStream final : public Stream {
 public:
  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override { works_.push_back(std::move(work)); }
  void Record(Event&) override { Refuse(); }
  void WaitFor(Event&) override { Refuse(); }
  Status Synchronize(Deadline) override { return Refuse(), status_; }
  Status status() const override { return status_; }

  // All of it; the handle that the graph is launched on is the address of a Stream.
  std::unique_ptr<StreamGraph> Take();

 private:
  void Refuse();

  std::vector<Work> works_;
  Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_COMM_KEEPING_STREAM_H_
