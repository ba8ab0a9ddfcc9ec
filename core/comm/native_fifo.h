// For tests: a queue of the host that has a handle, as a GPU's stream has.
#ifndef LOCKSTEP_CORE_COMM_NATIVE_FIFO_H_
#define LOCKSTEP_CORE_COMM_NATIVE_FIFO_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/comm/keeping_stream.h"
#include "core/device/host/host_device.h"
#include "core/device/native_stream.h"

namespace lockstep {

// What is launched on it is no piece of work of the port's.
class NativeFifo final : public Stream, public NativeStream {
 public:
  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override { fifo_->Enqueue(std::move(work)); }
  void Record(Event& event) override { fifo_->Record(event); }
  void WaitFor(Event& event) override { fifo_->WaitFor(event); }
  Status Synchronize(Deadline deadline) override {
    disturbed = disturbed || capturing_;
    return fifo_->Synchronize(deadline);
  }
  Status status() const override {
    disturbed = disturbed || capturing_;
    return fifo_->status();
  }
  Status LaunchOn(const Launch& launch) override { return launch(fifo_.get()); }
  Result<std::unique_ptr<StreamGraph>> Capture(const Launch& launch) override {
    ++captures;
    KeepingStream keeping;
    capturing_ = true;
    const Status status = launch(static_cast<Stream*>(&keeping));
    capturing_ = false;
    LOCKSTEP_RETURN_IF_ERROR(status);
    return keeping.Take();
  }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    fifo_->Enqueue([word, value] { return std::atomic_ref(*word).store(value), OkStatus(); });
    return OkStatus();
  }

  int captures = 0;
  mutable bool disturbed = false;  // used while it was captured, which ends a capture of CUDA's

 private:
  std::unique_ptr<Stream> fifo_ = HostDevice().NewStream();
  bool capturing_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_COMM_NATIVE_FIFO_H_
