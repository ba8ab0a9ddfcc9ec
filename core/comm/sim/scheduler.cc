// Runs ready fibers in an order drawn from the seed, and moves virtual time only when none is
// ready. Nothing to run and no timer within the silence is the end. A cancelled fiber is unwound by
// an exception; one that catches it and goes on is bounded.
#include "core/comm/sim/scheduler.h"

#include <algorithm>
#include <exception>

#include "core/base/check.h"

namespace lockstep::comm::sim {
namespace {

// Code that catches everything and tries again would never end.
constexpr int kMostRefusals = 10'000;

// To ask may take a call of the kernel: as long as many switches.
constexpr std::uint64_t kSwitchesPerQuestion = 64;

}  // namespace

void WaitList::NotifyAll(Scheduler& scheduler) {
  for (Task* task : std::exchange(waiting_, {})) {
    task->list_ = nullptr;
    task->notified_ = true;
    scheduler.Wake(*task);
  }
}

Scheduler::Scheduler(int ranks, std::uint64_t seed, std::size_t stack_bytes, Limits limits)
    : random_(seed),
      stacks_(stack_bytes),
      limits_(std::move(limits)),
      stopped_(static_cast<std::size_t>(ranks), false) {}

void Scheduler::At(std::int64_t ns, std::function<void()> action) {
  actions_.emplace(std::max(ns, now_ns_), std::move(action));
}

void Scheduler::Continue(int rank) {
  stopped_[static_cast<std::size_t>(rank)] = false;
  const auto parked = parked_.extract(rank);
  if (parked.empty()) return;
  ready_.insert(ready_.end(), parked.mapped().begin(), parked.mapped().end());
}

void Scheduler::Unlink(Task& task) {
  if (task.list_ != nullptr) std::erase(task.list_->waiting_, &task);
  task.list_ = nullptr;
  if (task.timer_.first != kNever) timers_.erase(task.timer_);
  task.timer_ = {kNever, 0};
}

void Scheduler::Wake(Task& task) {
  Unlink(task);
  ready_.push_back(&task);
}

Task* Scheduler::PickReady() {
  while (!ready_.empty()) {
    std::swap(ready_[random_.Below(ready_.size())], ready_.back());
    Task* task = ready_.back();
    ready_.pop_back();
    if (!stopped_[static_cast<std::size_t>(task->rank_)]) return task;
    parked_[task->rank_].push_back(task);
  }
  return nullptr;
}

void Scheduler::RunTask(Task& task) {
  Task* const outer = std::exchange(current_, &task);
  task.waits_for_ = {};
  ++switches_;
  task.fiber_.Resume(stacks_);
  current_ = outer;
}

bool Scheduler::AdvanceTime() {
  const std::int64_t timer = timers_.empty() ? kNever : timers_.begin()->first.first;
  const std::int64_t action = actions_.empty() ? kNever : actions_.begin()->first;
  const std::int64_t next = std::min(timer, action);
  if (next == kNever || next - now_ns_ >= limits_.silence_ns) return false;
  now_ns_ = next;
  while (!timers_.empty() && timers_.begin()->first.first == next) {
    Task& task = *timers_.begin()->second;
    task.notified_ = false;
    Wake(task);
  }
  return true;
}

bool Scheduler::AskInterrupted() {
  interrupted_ = interrupted_ || (limits_.interrupted && limits_.interrupted());
  return interrupted_;
}

bool Scheduler::Interrupted() {
  return interrupted_ || (switches_ % kSwitchesPerQuestion == 0 && AskInterrupted());
}

Scheduler::Ended Scheduler::Run() {
  for (;;) {
    while (!actions_.empty() && actions_.begin()->first <= now_ns_) {
      const auto action = actions_.extract(actions_.begin());
      action.mapped()();
    }
    if (switches_ >= limits_.switches) return Ended::kSwitches;
    if (Interrupted()) return Ended::kInterrupted;
    if (Task* task = PickReady()) {
      RunTask(*task);
    } else if (!AdvanceTime()) {
      return Ended::kQuiet;
    }
  }
}

void Scheduler::Cancel(Task& task) {
  LOCKSTEP_CHECK(&task != current_, "a task does not cancel itself");
  task.cancelled_ = true;
  Unlink(task);
  std::erase(ready_, &task);
  if (const auto parked = parked_.find(task.rank_); parked != parked_.end()) {
    std::erase(parked->second, &task);
  }
  // What it does on the way out may make it ready (an event that it sets); it never yields again.
  if (!task.done() && task.fiber_.started()) RunTask(task);
  LOCKSTEP_CHECK(task.done() || !task.fiber_.started(), "a cancelled task does not yield");
  std::erase(ready_, &task);
}

Scheduler::Woken Scheduler::WaitWithoutThrow(WaitList& list, std::int64_t until_ns,
                                             std::string_view what) {
  Task* const task = current_;
  LOCKSTEP_CHECK(task != nullptr, "only what SimWorld::Run runs can wait");
  if (task->cancelled_) {
    LOCKSTEP_CHECK(++task->refusals_ < kMostRefusals, "a rank that goes on although it is over");
    return Woken::kCancelled;
  }
  task->notified_ = false;
  task->list_ = &list;
  list.waiting_.push_back(task);
  if (until_ns != kNever) {
    task->timer_ = {std::max(until_ns, now_ns_), next_timer_++};
    timers_.emplace(task->timer_, task);
  }
  task->waits_for_ = what;
  task->fiber_.Yield();
  if (task->cancelled_) return Woken::kCancelled;
  return task->notified_ ? Woken::kNotified : Woken::kDeadline;
}

Scheduler::Woken Scheduler::Wait(WaitList& list, std::int64_t until_ns, std::string_view what) {
  const Woken woken = WaitWithoutThrow(list, until_ns, what);
  if (woken == Woken::kCancelled && std::uncaught_exceptions() == 0) throw Cancelled();
  return woken;
}

void Scheduler::SleepUntil(std::int64_t ns, std::string_view what) {
  WaitList nobody;
  Wait(nobody, ns, what);
}

std::int64_t Scheduler::TimeOf(Deadline deadline) const {
  const std::int64_t remaining = std::max<std::int64_t>(0, deadline.RemainingNs());
  return remaining > kNever - now_ns_ ? kNever : now_ns_ + remaining;
}

}  // namespace lockstep::comm::sim
