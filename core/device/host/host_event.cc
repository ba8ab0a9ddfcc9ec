// A latch whose state is an atomic and whose waiters sleep on a condition. Setter and waiter both
// use sequential consistency, so that one of them always sees the other.
#include "core/device/host/host_event.h"

#include <algorithm>
#include <chrono>
#include <typeinfo>

#include "core/base/check.h"

namespace lockstep::device::host {

std::shared_ptr<HostLatch> HostEvent::LatchOf(Event& event) {
  LOCKSTEP_CHECK(typeid(event) == typeid(HostEvent), "an event of another device");
  return static_cast<HostEvent&>(event).latch_;
}

Ticks HostLatch::ReachedAt() const {
  LOCKSTEP_CHECK(Reached(), "the event was not reached");
  return reached_at_;
}

Status HostLatch::Await(Deadline deadline) {
  const auto settled = [this] { return state_.load(std::memory_order_seq_cst) >= kReached; };
  if (settled()) return of_stream_;
  std::unique_lock lock(mutex_);
  // A setter either sees this waiter, or has published before `settled` is asked below.
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const auto remaining =
      std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline.RemainingNs()));
  const bool done =
      changed_.wait_until(lock, std::chrono::steady_clock::now() + remaining, settled);
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  if (!done) return DeadlineExceeded("the event was not reached before the deadline");
  return of_stream_;
}

void HostLatch::CheckMayReset() const {
  LOCKSTEP_CHECK(state_.load(std::memory_order_acquire) != kPromised,
                 "an event may not be reset while a stream is going to set it");
}

void HostEvent::Reset() {
  latch_->CheckMayReset();
  latch_ = std::make_shared<HostLatch>();
}

void HostLatch::Promise() {
  LOCKSTEP_CHECK(state_.load(std::memory_order_acquire) == kUnrecorded,
                 "an event is recorded once; Reset it first");
  state_.store(kPromised, std::memory_order_release);
}

void HostLatch::Settle(const Status& of_stream) {
  reached_at_ = NowTicks();
  of_stream_ = of_stream;
  state_.store(of_stream.ok() ? kReached : kFailed, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  { std::lock_guard lock(mutex_); }  // the waiter is in wait() now, not between its test and it
  changed_.notify_all();
}

}  // namespace lockstep::device::host
