// Tasks of all ranks on one thread, in virtual time, in an order that follows from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/comm/sim/fiber.h"

namespace lockstep::comm::sim {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Thrown out of a wait of a task that is cancelled, so that what lives on its stack is destroyed.
// Not a std::exception: code that handles errors lets it pass.
struct Cancelled {};

class Scheduler;
class Task;

// Tasks that wait for the same thing to change.
class WaitList {
 public:
  void NotifyAll(Scheduler& scheduler);

 private:
  friend class Scheduler;
  std::vector<Task*> waiting_;
};

class Task {
 public:
  Task(int rank, std::function<void()> body) : rank_(rank), fiber_(std::move(body)) {}
  int rank() const { return rank_; }
  bool done() const { return fiber_.done(); }
  bool cancelled() const { return cancelled_; }
  // What it waits for, in words; empty when it waits for nothing.
  std::string_view waits_for() const { return waits_for_; }

 private:
  friend class Scheduler;
  friend class WaitList;
  using TimerKey = std::pair<std::int64_t, std::uint64_t>;

  int rank_;
  Fiber fiber_;
  bool cancelled_ = false;
  bool notified_ = false;
  int refusals_ = 0;  // waits after it was cancelled
  WaitList* list_ = nullptr;
  TimerKey timer_ = {kNever, 0};
  std::string_view waits_for_;
};

class Scheduler {
 public:
  struct Limits {
    std::int64_t silence_ns = kNever;
    std::uint64_t switches = std::numeric_limits<std::uint64_t>::max();
  };
  enum class Ended { kQuiet, kSwitches };
  enum class Woken { kNotified, kDeadline, kCancelled };

  Scheduler(int ranks, std::uint64_t seed, std::size_t stack_bytes, Limits limits);

  std::int64_t now_ns() const { return now_ns_; }
  const std::int64_t* clock() const { return &now_ns_; }
  Random& random() { return random_; }
  Task* current() { return current_; }

  // Ready from now on. The task outlives its last run.
  void Start(Task& task) { ready_.push_back(&task); }
  // Calls `action` from outside any task when that time has come (or at once, when it has passed).
  void At(std::int64_t ns, std::function<void()> action);
  // Tasks of a stopped rank do not run.
  void Stop(int rank) { stopped_[static_cast<std::size_t>(rank)] = true; }
  void Continue(int rank);
  // Until no task can run any more, and none would before a silence of that length has passed.
  Ended Run();
  // From outside of it: unwinds its stack now. What waits on the way does not wait.
  void Cancel(Task& task);

  // From inside a task: until the list is notified or the time has come. Throws Cancelled when the
  // task is cancelled, or, where it must not throw, returns kCancelled. `what` is what a report
  // says of a task that waits for ever.
  Woken Wait(WaitList& list, std::int64_t until_ns, std::string_view what);
  Woken WaitWithoutThrow(WaitList& list, std::int64_t until_ns, std::string_view what);
  void SleepUntil(std::int64_t ns, std::string_view what);

  // The virtual time at which a deadline passes.
  std::int64_t TimeOf(Deadline deadline) const;

 private:
  friend class WaitList;
  using TimerKey = Task::TimerKey;

  void Wake(Task& task);
  void Unlink(Task& task);
  void RunTask(Task& task);
  bool AdvanceTime();
  Task* PickReady();

  std::int64_t now_ns_ = 0;
  Random random_;
  StackPool stacks_;
  Limits limits_;
  std::vector<bool> stopped_;
  std::vector<Task*> ready_;
  std::map<TimerKey, Task*> timers_;
  std::multimap<std::int64_t, std::function<void()>> actions_;
  std::map<int, std::vector<Task*>> parked_;  // ready tasks of stopped ranks
  std::uint64_t next_timer_ = 0;
  std::uint64_t switches_ = 0;
  Task* current_ = nullptr;
};

}  // namespace lockstep::comm::sim
