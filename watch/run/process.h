// One process of a watched job: of this host, or of another watcher's.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "watch/events/event.h"
#include "watch/run/stacks/python_stacks.h"

namespace lockstep::watch::run {

enum class ProcessState : std::uint8_t {
  kRuns,
  kSleeps,
  kStopped,
  kGone,
  kUnknown,  // the watcher that saw it is gone
};

// What stays.
struct ProcessName {
  std::string job;
  std::int32_t rank = -1;
  std::int32_t size = 0;
  bool threads = false;  // several of its threads may call MPI
  static void Describe(auto& fields, auto& name) {
    fields(name.job, name.rank, name.size, name.threads);
  }
};

// A thread that is in a call.
struct CallerFacts {
  std::int32_t thread = 0;   // its number in events
  std::uint64_t ran_ns = 0;  // on a processor
  bool sleeps = false;
  static void Describe(auto& fields, auto& facts) {
    fields(facts.thread, facts.ran_ns, facts.sleeps);
  }
};

// What a look finds. Times and counts are of the process's own host.
struct ProcessFacts {
  std::uint64_t begun = 0;   // events
  std::uint64_t ran_ns = 0;  // its main thread, on a processor
  ProcessState state = ProcessState::kRuns;
  bool cut_off = false;      // it stopped to write events
  bool exited = false;       // by exit() or return
  bool quit = false;         // by _exit()
  bool told_to_end = false;  // its watcher was, by a signal
  std::int32_t exit_code = 0;
  // Of this host, in ticks; 0: not, or not known. When it began to exit, and when a process of the
  // command told it to end.
  std::uint64_t exited_ticks = 0;
  std::uint64_t ended_ticks = 0;
  std::int32_t threads = 0;  // of the program, where several may call MPI; 0: not known
  std::vector<CallerFacts> callers = {};  // as far as events were read
  static void Describe(auto& fields, auto& facts) {
    fields(facts.begun, facts.ran_ns, facts.cut_off, facts.exited, facts.quit, facts.told_to_end,
           facts.exit_code, facts.threads, facts.callers);
    fields.UpTo(facts.state, ProcessState::kUnknown);
  }

  // All its threads that are in calls sleep, or have worked there since `before`. A thread that
  // only waits for a processor has not.
  bool Waited(const ProcessFacts& before) const {
    constexpr std::uint64_t kWorkedNs = 20'000'000;
    if (callers.empty()) {
      return state == ProcessState::kSleeps || ran_ns - before.ran_ns >= kWorkedNs;
    }
    return std::ranges::all_of(callers, [&](const CallerFacts& mine) {
      const auto then = std::ranges::find(before.callers, mine.thread, &CallerFacts::thread);
      const bool known = then != before.callers.end();
      return mine.sleeps || (known && mine.ran_ns - then->ran_ns >= kWorkedNs);
    });
  }
};

// A process is stopped or gone when so many looks in a row found it so.
inline constexpr int kStrangeLooks = 3;

class Process {
 public:
  using Take = std::function<void(std::span<const events::Event>)>;

  virtual ~Process() = default;
  const ProcessName& name() const { return name_; }
  const std::string& host() const { return host_; }

  // Gives the events that are complete to `take`, in order; at most `most`. How many, as read().
  virtual std::uint64_t Drain(std::uint64_t most, const Take& take) = 0;
  // Events that were given away; one that says that its call returned, too, is two.
  virtual std::uint64_t read() const = 0;
  // … those that took room until then: not those that were only counted.
  virtual std::uint64_t read_from_ring() const { return read(); }
  // What comes next, where that is calls that are counted.
  virtual events::Cycle Coming() { return {}; }
  // So many of these, which are over, were taken.
  virtual void Pass(std::uint64_t) {}
  // `over`: its launcher is gone, so it is, too. Of another watcher's: what that told last.
  virtual ProcessFacts Look(bool over) = 0;
  // It has written since this was asked last, and neither ends nor ended. Then a look would find
  // nothing, and takes long. False: not known.
  virtual bool WentOn() { return false; }
  // "solver.c:31"; "?" where that is not known.
  virtual std::string Line(std::uint64_t site) = 0;
  virtual stacks::PythonStack Python() = 0;
  virtual std::string Stacks() = 0;  // as StacksOf
  virtual void Kill() = 0;
  // Its launch is over: what it left in memory is given back.
  virtual void Forget() {}
  // When it began, on MonotonicNs(); 0: not known.
  virtual std::int64_t started_ns() const { return 0; }
  virtual pid_t pid() const { return 0; }  // 0: of another watcher's, not told
  // Readable when the process has ended; -1: not known.
  virtual int end_fd() const { return -1; }

 protected:
  Process(ProcessName name, std::string host) : name_(std::move(name)), host_(std::move(host)) {}

 private:
  ProcessName name_;
  std::string host_;
};

}  // namespace lockstep::watch::run
