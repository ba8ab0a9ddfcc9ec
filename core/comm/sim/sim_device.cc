// Streams and events of a simulated rank: a FIFO stream is one more fiber. It keeps the host
// device's promises, such as a bounded queue and patience at the end, in virtual time. Large
// buffers come from the host, which checks that there is memory.
#include <deque>
#include <exception>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/comm/sim/state.h"
#include "core/device/host/host_device.h"

namespace lockstep::comm::sim {
namespace {

constexpr std::size_t kCapacity = 4096;
constexpr std::int64_t kPatienceNs = 10'000'000'000;

Status Over() { return Terminated("this simulated rank is over"); }

// What an event and the streams that set it or wait for it share.
struct Latch {
  enum class State { kUnrecorded, kPromised, kReached, kFailed };

  bool settled() const { return state == State::kReached || state == State::kFailed; }
  void Promise() {
    LOCKSTEP_CHECK(state == State::kUnrecorded, "an event is recorded once; Reset it first");
    state = State::kPromised;
  }
  // Once a stream got there.
  void Settle(const Status& of_stream, Scheduler& scheduler) {
    state = of_stream.ok() ? State::kReached : State::kFailed;
    error = of_stream;
    reached_at = NowTicks();
    changed.NotifyAll(scheduler);
  }
  Status Await(Scheduler& scheduler, std::int64_t until_ns) {
    while (!settled()) {
      const auto woken = scheduler.Wait(changed, until_ns, "an event");
      if (woken == Scheduler::Woken::kCancelled) return Over();
      if (woken == Scheduler::Woken::kDeadline && !settled()) {
        return DeadlineExceeded("the event was not reached before the deadline");
      }
    }
    return error;
  }

  State state = State::kUnrecorded;
  Status error;
  Ticks reached_at = 0;
  WaitList changed;
};

class SimEvent final : public device::Event {
 public:
  explicit SimEvent(Scheduler& scheduler) : scheduler_(scheduler) {}
  bool Reached() const override { return latch_->state == Latch::State::kReached; }
  Ticks ReachedAt() const override {
    LOCKSTEP_CHECK(Reached(), "the event was not reached");
    return latch_->reached_at;
  }
  Status Await(Deadline deadline) override {
    const auto latch = latch_;  // outlives the event, should its owner be unwound
    return latch->Await(scheduler_, scheduler_.TimeOf(deadline));
  }
  void Reset() override {
    LOCKSTEP_CHECK(latch_->state != Latch::State::kPromised,
                   "an event may not be reset while a stream is going to set it");
    latch_ = std::make_shared<Latch>();
  }

  static std::shared_ptr<Latch> LatchOf(device::Event& event) {
    LOCKSTEP_CHECK(typeid(event) == typeid(SimEvent), "an event of another device");
    return static_cast<SimEvent&>(event).latch_;
  }

 private:
  Scheduler& scheduler_;
  std::shared_ptr<Latch> latch_ = std::make_shared<Latch>();
};

class SimInlineStream final : public Stream {
 public:
  explicit SimInlineStream(Scheduler& scheduler) : scheduler_(scheduler) {}
  bool inline_execution() const override { return true; }
  void Enqueue(Work work) override {
    if (status_.ok()) status_ = work();
  }
  void Record(device::Event& event) override {
    const auto latch = SimEvent::LatchOf(event);
    latch->Promise();
    latch->Settle(status_, scheduler_);
  }
  void WaitFor(device::Event& event) override {
    const auto latch = SimEvent::LatchOf(event);
    if (status_.ok()) status_ = latch->Await(scheduler_, kNever);
  }
  Status Synchronize(Deadline) override { return status_; }
  Status status() const override { return status_; }

 private:
  Scheduler& scheduler_;
  Status status_;
};

class SimFifoStream final : public Stream {
 public:
  SimFifoStream(SimState& state, int rank)
      : state_(state), scheduler_(state.scheduler), rank_(rank), task_(rank, [this] { Serve(); }) {}
  ~SimFifoStream() override {
    if (!started_) return;
    const std::int64_t until_ns = scheduler_.now_ns() + kPatienceNs;
    while (!idle() && std::uncaught_exceptions() == 0) {
      const auto woken = scheduler_.WaitWithoutThrow(advanced_, until_ns, "a stream's last work");
      if (woken != Scheduler::Woken::kNotified) break;
    }
    closing_ = true;
    scheduler_.Cancel(task_);
    queue_.clear();
    std::erase(state_.At(rank_).streams, &task_);
  }

  SimFifoStream(const SimFifoStream&) = delete;
  SimFifoStream& operator=(const SimFifoStream&) = delete;

  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override { Push({.work = std::move(work), .record = {}, .wait = {}}); }
  void Record(device::Event& event) override {
    auto latch = SimEvent::LatchOf(event);
    latch->Promise();
    Push({.work = {}, .record = std::move(latch), .wait = {}});
  }
  void WaitFor(device::Event& event) override {
    Push({.work = {}, .record = {}, .wait = SimEvent::LatchOf(event)});
  }
  Status Synchronize(Deadline deadline) override {
    const std::int64_t until_ns = scheduler_.TimeOf(deadline);
    while (!idle()) {
      const auto woken = scheduler_.Wait(advanced_, until_ns, "a stream");
      if (woken == Scheduler::Woken::kCancelled) return Over();
      if (woken == Scheduler::Woken::kDeadline && !idle()) {
        return DeadlineExceeded("the stream did not finish before the deadline");
      }
    }
    return status_;
  }

  Status status() const override { return status_; }

 private:
  struct Item {  // one of
    Work work;
    std::shared_ptr<Latch> record;
    std::shared_ptr<Latch> wait;
  };
  bool idle() const { return queue_.empty() && !busy_; }
  void Push(Item item) {
    while (queue_.size() >= kCapacity) {
      if (scheduler_.Wait(advanced_, kNever, "room on a stream") == Scheduler::Woken::kCancelled) {
        return;
      }
    }
    queue_.push_back(std::move(item));
    if (!started_) {
      started_ = true;
      state_.At(rank_).streams.push_back(&task_);
      scheduler_.Start(task_);
    }
    pushed_.NotifyAll(scheduler_);
  }

  void Serve() {
    try {
      while (!closing_) {
        if (queue_.empty()) {
          scheduler_.Wait(pushed_, kNever, "work");
          continue;
        }
        Item item = std::move(queue_.front());
        queue_.pop_front();
        busy_ = true;
        Run(item);
        item = {};
        busy_ = false;
        advanced_.NotifyAll(scheduler_);
      }
    } catch (const Cancelled&) {
      busy_ = false;
    }
  }
  void Run(Item& item) {
    if (item.record != nullptr) return item.record->Settle(status_, scheduler_);
    if (!status_.ok()) return;
    status_ = item.wait != nullptr ? item.wait->Await(scheduler_, kNever) : item.work();
  }

  SimState& state_;
  Scheduler& scheduler_;
  int rank_;
  Task task_;
  bool started_ = false;
  bool closing_ = false;
  bool busy_ = false;
  std::deque<Item> queue_;
  Status status_;
  WaitList pushed_;
  WaitList advanced_;
};

class SimBuffer final : public device::Buffer {
 public:
  explicit SimBuffer(std::int64_t bytes) : storage_(static_cast<std::size_t>(bytes) + kAlign) {}
  void* data() override {
    const auto begin = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (kAlign - begin % kAlign) % kAlign;
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(storage_.size() - kAlign);
  }

 private:
  static constexpr std::size_t kAlign = 256;
  std::vector<std::byte> storage_;
};

class SimDevice final : public device::Device {
 public:
  SimDevice(SimState& state, int rank) : state_(state), rank_(rank) {}
  std::string_view name() const override { return "sim"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    // A large one through the host, which looks whether there is so much memory.
    if (bytes < 0 || bytes > kSmallBytes) return device::host::HostDevice().Allocate(bytes);
    return std::make_unique<SimBuffer>(bytes);
  }
  std::unique_ptr<device::Event> NewEvent() override {
    return std::make_unique<SimEvent>(state_.scheduler);
  }
  std::unique_ptr<Stream> NewStream() override {
    return std::make_unique<SimFifoStream>(state_, rank_);
  }
  std::unique_ptr<Stream> NewInlineStream() override {
    return std::make_unique<SimInlineStream>(state_.scheduler);
  }

 private:
  static constexpr std::int64_t kSmallBytes = 1 << 20;
  SimState& state_;
  int rank_;
};

}  // namespace

std::unique_ptr<device::Device> NewSimDevice(SimState& state, int rank) {
  return std::make_unique<SimDevice>(state, rank);
}

}  // namespace lockstep::comm::sim
