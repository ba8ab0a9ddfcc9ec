// A queue and a detached thread that share ownership of it. So work that never returns keeps the
// thread and the queue, and nothing else of the stream. The first error stays and drops the work
// behind it.
#include "core/device/host/fifo_stream.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep::device::host {
namespace {

// How often a wait for an event looks whether the stream was given up.
constexpr double kGiveUpPollSeconds = 0.02;

template <typename Predicate>
bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
               Deadline deadline, Predicate predicate) {
  const auto remaining =
      std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline.RemainingNs()));
  return changed.wait_until(lock, std::chrono::steady_clock::now() + remaining, predicate);
}

}  // namespace

class FifoStream::Queue {
 public:
  void Push(Item item) {
    std::unique_lock lock(mutex_);
    if (items_.size() >= kCapacity &&
        !WaitUntil(progressed_, lock, Deadline::AfterSeconds(kLongestWaitSeconds),
                   [this] { return items_.size() < kCapacity; })) {
      if (status_.ok()) status_ = DeadlineExceeded("a stream's queue was full for 24 hours");
      return;
    }
    items_.push_back(std::move(item));
    ++pushed_;
    lock.unlock();
    pushed_or_closed_.notify_one();
  }

  // Waits for what was pushed before the call.
  Status Await(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = pushed_;
    if (!WaitUntil(progressed_, lock, deadline, [&] { return finished_ >= target; })) {
      return DeadlineExceeded("the stream's work was not done before the deadline");
    }
    return status_;
  }

  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

  // No more work will come; true when the thread is done before the deadline.
  bool Close(Deadline deadline) {
    std::unique_lock lock(mutex_);
    closed_ = true;
    pushed_or_closed_.notify_one();
    return WaitUntil(progressed_, lock, deadline, [this] { return thread_done_; });
  }

  void GiveUp() {
    std::lock_guard lock(mutex_);
    given_up_ = true;
    items_.clear();
  }

  bool given_up() const {
    std::lock_guard lock(mutex_);
    return given_up_;
  }

  // The thread's life.
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      pushed_or_closed_.wait(lock, [this] { return closed_ || !items_.empty(); });
      if (items_.empty() || given_up_) break;
      Item item = std::move(items_.front());
      items_.pop_front();
      const Status before = status_;
      lock.unlock();
      Status after = RunItem(item, before);
      item = Item();  // what the work holds is released before it counts as finished
      lock.lock();
      if (status_.ok()) status_ = std::move(after);
      ++finished_;
      progressed_.notify_all();
    }
    thread_done_ = true;
    progressed_.notify_all();
  }

 private:
  static Status RunItem(const Item& item, const Status& before) {
    if (item.reached == nullptr) return before.ok() ? item.work() : before;
    item.reached->Settle(before);
    return before;
  }

  mutable std::mutex mutex_;
  std::condition_variable pushed_or_closed_;
  std::condition_variable progressed_;
  std::deque<Item> items_;
  std::uint64_t pushed_ = 0;
  std::uint64_t finished_ = 0;
  Status status_;
  bool closed_ = false;
  bool given_up_ = false;
  bool thread_done_ = false;
};

FifoStream::FifoStream(double patience_seconds)
    : patience_seconds_(patience_seconds), queue_(std::make_shared<Queue>()) {
  std::thread([queue = queue_] { queue->Run(); }).detach();
}

FifoStream::~FifoStream() {
  if (queue_->Close(Deadline::AfterSeconds(patience_seconds_))) return;
  queue_->GiveUp();
  // Ends a wait for an event; work that ignores it keeps the thread.
  static_cast<void>(queue_->Close(Deadline::AfterSeconds(5 * kGiveUpPollSeconds)));
}

void FifoStream::Enqueue(Work work) { queue_->Push({std::move(work), nullptr}); }

void FifoStream::Record(Event& event) {
  auto latch = HostEvent::LatchOf(event);
  latch->Promise();
  queue_->Push({nullptr, std::move(latch)});
}

void FifoStream::WaitFor(Event& event) {
  Enqueue([latch = HostEvent::LatchOf(event), queue = std::weak_ptr<Queue>(queue_)]() -> Status {
    const Deadline deadline = Deadline::AfterSeconds(kLongestWaitSeconds);
    for (;;) {
      const Status status =
          latch->Await(deadline.Earlier(Deadline::AfterSeconds(kGiveUpPollSeconds)));
      if (status.code() != StatusCode::kDeadlineExceeded || deadline.Passed()) return status;
      const auto owner = queue.lock();
      if (owner == nullptr || owner->given_up()) {
        return DeadlineExceeded("the stream ended while it waited for an event");
      }
    }
  });
}

Status FifoStream::Synchronize(Deadline deadline) { return queue_->Await(deadline); }

Status FifoStream::status() const { return queue_->status(); }

}  // namespace lockstep::device::host
