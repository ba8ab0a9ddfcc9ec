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
  // CHECKs that no stream is going to set it. An event gets a new latch then: a stream may still
  // have to look at the old one.
  void CheckMayReset() const;

  // For streams: promised when recorded, then settled as the stream is when it gets there.
  void Promise();
  void Settle(const Status& of_stream);

 private:
  enum State : int { kUnrecorded, kPromised, kReached, kFailed };

  std::atomic<int> state_{kUnrecorded};
  std::atomic<int> waiters_{0};
  // Both are written before kReached or kFailed is published.
  Ticks reached_at_ = 0;
  Status of_stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

class HostEvent final : public Event {
 public:
  bool Reached() const override { return latch_->Reached(); }
  Ticks ReachedAt() const override { return latch_->ReachedAt(); }
  Status Await(Deadline deadline) override { return latch_->Await(deadline); }
  void Reset() override;

  // The latch behind the port, shared: a waiter may destroy the event as soon as it is reached,
  // while the stream that sets it is still at it. CHECKs that it is an event of the host.
  static std::shared_ptr<HostLatch> LatchOf(Event& event);

 private:
  std::shared_ptr<HostLatch> latch_ = std::make_shared<HostLatch>();
};

}  // namespace lockstep::device::host
