// Tasks of all ranks on one thread, in virtual time, in an order that follows from a seed.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/random.h"

namespace lockstep::comm::sim {

// Stacks of one size, mapped many at a time and reused. Only pages that are touched take memory.
// The first kGuarded stacks end in a page that may not be touched (a guard costs the kernel a
// mapping, of which a process has 65,530).
class StackPool {
 public:
  static constexpr std::size_t kGuarded = 4096;

  explicit StackPool(std::size_t stack_bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  std::span<std::byte> Take();
  void Give(std::span<std::byte> stack) { free_.push_back(stack); }

 private:
  void Map();

  std::size_t stack_bytes_;
  std::size_t mapped_ = 0;  // stacks
  std::vector<std::span<std::byte>> chunks_;
  std::vector<std::span<std::byte>> free_;
};

// A function with a stack of its own that runs until it yields. All of a thread's fibers are
// resumed and yield on that thread. Exceptions may be in flight on any number of them: each has its
// own state of the C++ runtime's exception handling.
class Fiber {
 public:
  // `body` must not let an exception out. A fiber that was resumed must be done when it goes.
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {}
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside any fiber: runs it until it yields or is done. Takes a stack at the first call and
  // gives it back when done.
  void Resume(StackPool& stacks);
  // From inside: back to the caller of Resume.
  void Yield();
  bool started() const { return !stack_.empty() || done_; }
  bool done() const { return done_; }

 private:
  struct Exceptions {  // __cxa_eh_globals of the Itanium C++ ABI, 2.2.2
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  // What AddressSanitizer and ThreadSanitizer were told, who have to know of every change of stack.
  struct Sanitizer {
    void* inside = nullptr;   // a fake stack; a fiber
    void* outside = nullptr;  // a stack; a fiber
    std::size_t outside_bytes = 0;
  };
  static void Enter(unsigned int high, unsigned int low);
  void Begin();
  void SwitchIn();
  void BeforeSwitchOut();
  void AfterSwitchIn();
  static Exceptions SwapExceptions(const Exceptions& now);

  std::function<void()> body_;
  std::span<std::byte> stack_;
  ucontext_t inside_;
  ucontext_t outside_;
  Exceptions exceptions_;
  bool done_ = false;
  Sanitizer sanitizer_;
};

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
    std::function<bool()> interrupted = {};  // asked now and then
  };
  enum class Ended { kQuiet, kSwitches, kInterrupted };
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
  // Asks whether the run is interrupted: for a task that runs long without a wait.
  bool AskInterrupted();
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
  bool Interrupted();
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
  bool interrupted_ = false;
  Task* current_ = nullptr;
};

}  // namespace lockstep::comm::sim
