// A stream whose work a thread of its own runs, first in, first out.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device/device.h"
#include "core/device/host/host_event.h"

namespace lockstep::device::host {

inline constexpr double kLongestWaitSeconds = 24.0 * 3600;  // of WaitFor and of a full queue

// Thread-safe. At most kCapacity pieces of work wait; Enqueue blocks while there are as many.
//
// The destructor lets queued work finish for up to `patience_seconds`, then gives it up: what is
// queued is dropped, and a piece of work that still runs (a call of a library that never returns)
// keeps its thread, detached. What such work refers to must then outlive the process's next steps:
// a worker in that state leaves with _exit.
class FifoStream final : public Stream {
 public:
  static constexpr std::size_t kCapacity = 4096;

  explicit FifoStream(double patience_seconds = 10);
  ~FifoStream() override;
  FifoStream(const FifoStream&) = delete;
  FifoStream& operator=(const FifoStream&) = delete;

  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override;
  void Record(Event& event) override;
  void WaitFor(Event& event) override;
  Status Synchronize(Deadline deadline) override;
  Status status() const override;

 private:
  struct Item {
    Work work;                           // or
    std::shared_ptr<HostLatch> reached;  // an event to set
  };
  class Queue;

  double patience_seconds_;
  std::shared_ptr<Queue> queue_;  // shared with the thread, which may outlive the stream
};

}  // namespace lockstep::device::host
