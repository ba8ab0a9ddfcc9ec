// An event of the host: a latch with the tick at which it was set.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "core/device/device.h"

namespace lockstep::device::host {

// Thread-safe. Setting it costs a stamp and two atomic accesses when nobody waits.
class HostLatch {
 public:
  bool Reached() const { return state_.load(std::memory_order_acquire) == kReached; }
  Ticks ReachedAt() const;
  Status Await(Deadline deadline);
  void Reset();

  // For streams: promised when recorded, then either set or failed.
  void Promise();
  void Set();
  void Fail(Status error);

 private:
  enum State : int { kUnrecorded, kPromised, kReached, kFailed };

  void Wake();
  Status Outcome() const;  // only when reached or failed

  std::atomic<int> state_{kUnrecorded};
  std::atomic<int> waiters_{0};
  Ticks reached_at_ = 0;  // written before kReached is published
  Status error_;          // written before kFailed is published
  std::mutex mutex_;
  std::condition_variable changed_;
};

class HostEvent final : public Event {
 public:
  bool Reached() const override { return latch_->Reached(); }
  Ticks ReachedAt() const override { return latch_->ReachedAt(); }
  Status Await(Deadline deadline) override { return latch_->Await(deadline); }
  void Reset() override { latch_->Reset(); }

  // The latch behind the port, shared: a waiter may destroy the event as soon as it is reached,
  // while the stream that sets it is still at it. CHECKs that it is an event of the host.
  static std::shared_ptr<HostLatch> LatchOf(Event& event);

 private:
  std::shared_ptr<HostLatch> latch_ = std::make_shared<HostLatch>();
};

}  // namespace lockstep::device::host
