// How long a worker is silent, and when that is to be reported.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "core/agent/agent_plugin.h"
#include "core/agent/child.h"
#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/journal/journal.h"

namespace lockstep::agent {

// That a process works although it tells nothing: it is given memory, reads or writes files, or
// wants to compute and does not get a processor. Of each only the time that it takes counts: a page
// fault now and then is no work.
class ProgressProbe {
 public:
  // What the kernel says of a thread, since it began.
  struct Times {
    std::int64_t ran_ns = 0;
    std::int64_t waited_ns = 0;
    std::int64_t runs = 0;  // so often it was given a processor
    std::int64_t page_faults = 0;
    bool ready = false;  // it runs, or waits for a processor
    bool ending = false;
    bool WaitsSince(const Times& then) const {
      return ready && then.ready && runs == then.runs && ran_ns == then.ran_ns;
    }
  };
  using Threads = std::map<pid_t, Times>;

  explicit ProgressProbe(const TickScale& scale = {},
                         std::function<bool()> host_is_short = &HostIsShort,
                         std::function<Threads(pid_t)> threads_of = &ThreadsOf)
      : scale_(scale),
        host_is_short_(std::move(host_is_short)),
        threads_of_(std::move(threads_of)) {}

  static Threads ThreadsOf(pid_t pid);
  // Whether more threads want to run than this host has processors for (proc_loadavg(5)).
  static bool HostIsShort();

  // Of the process, in the silence that began at `since`. To be repeated while it lasts. A thread
  // only polls when it had a processor `polls` times, each time for a moment.
  void Look(pid_t pid, Ticks since, std::int64_t polls);

  // From `since` to `now`. While the machine was suspended no time passed: ticks of some machines
  // go on, CLOCK_MONOTONIC does not. So between two looks as much passed as both tell.
  double PassedSeconds(Ticks since, Ticks now) const;
  // So long, since the last look before the silence that began at `since`, the thread of the
  // process that waited longest was ready to run and did not (run delay,
  // /proc/<pid>/task/<tid>/schedstat). No wait in the silence is missed, however late its first
  // look was, and none that lasts. With it counts the time in which the kernel was ending the
  // thread: up to the newest look that showed that it had had a processor meanwhile, while the host
  // was short of them. It waits for locks then, whose holders have none, and no run delay tells of
  // that. One that is stuck gets none.
  double HeldUpSeconds(Ticks since) const;
  // The run delay with the time in which it worked, as far as looks tell.
  double BusySeconds(Ticks since) const;
  // The run delay since the first look in the silence, without threads that look for news, and then
  // sleep or give their processor away, again and again: they want none.
  double StarvedSeconds(Ticks since) const { return LongestOf(starved_ns_, since); }

 private:
  using Spans = std::map<pid_t, std::int64_t>;  // of threads, ns

  double LongestOf(const Spans& spans, Ticks since) const;
  static Spans Sum(Spans one, const Spans& other);
  std::int64_t SpanNs(Ticks from, Ticks to, std::int64_t to_monotonic_ns) const;

  TickScale scale_;
  std::function<bool()> host_is_short_;
  std::function<Threads(pid_t)> threads_of_;
  Ticks since_ = 0;  // of the silence
  // The newest look.
  Ticks looked_ = 0;
  std::int64_t looked_monotonic_ns_ = 0;
  std::int64_t io_bytes_ = 0;
  Threads newest_;
  Threads before_;    // the silence
  Threads at_first_;  // look in the silence
  // In the silence, up to the newest look.
  std::int64_t passed_ns_ = 0;
  std::int64_t io_ns_ = 0;
  Spans waited_ns_, starved_ns_, worked_ns_, ending_ns_;
  Spans untold_ns_;  // of waited_ns_: what the kernel has not told yet
};

// A silence is known by the event that began it, and reported once. Looks are few: the agent shares
// a processor with what is measured, and sleeps (wake_ms(), for poll(2)) until there could be one.
class SilenceWatch {
 public:
  using LastEvent = std::optional<journal::JournalEvent>;

  // Of a worker of `ranks`.
  SilenceWatch(const AgentOptions& options, const TickScale& scale, int ranks,
               std::function<bool(pid_t)> has_cuda_driver = &HasCudaDriver)
      : quiet_seconds_(options.quiet_seconds),
        deadline_seconds_(options.silence_deadline_seconds),
        ranks_(ranks),
        scale_(scale),
        has_cuda_driver_(std::move(has_cuda_driver)) {}

  // Whether the process has loaded it.
  static bool HasCudaDriver(pid_t pid);

  // The newest event of a journal. A call that is queued behind one that has begun is kStart, too.
  static LastEvent Newest(const journal::JournalReader& reader);

  // Of a new worker.
  void Begin();
  int wake_ms() const;
  // It stopped: how long it was silent before matters now.
  void LookSoon() { next_look_ = Deadline::AfterNs(0); }
  // Whether it is time to ask what follows.
  bool TakeGlance();
  bool TakeLook();
  bool IsNewlyQuiet(const WorkerState& worker, const LastEvent& last);
  bool IsNewlyOverdue(pid_t pid, const WorkerState& worker, const LastEvent& last);

  // Memory and files come page by page, and a processor late, without an event: a rank that is to
  // compute is not silent while it takes these, nor one that connects for want of a processor. In a
  // collective it waits for peers all the same. Nor is one silent that starts or connects with
  // CUDA's driver: other processes may keep it waiting there, for up to 30 s. If it takes longer,
  // all of it was silence.
  void LookForProgress(pid_t pid, const WorkerState& worker, const LastEvent& last);
  struct Silence {
    // From the worker's newest event (or its start) to now, without the time in which it worked, or
    // the machine was suspended. Of a stopped one no more than its stop took: what came before has
    // another cause.
    double seconds = 0;
    // Of a worker in a call that waits for peers: for so long of that it was kept from a processor,
    // as far as looks tell. A library that polls, or adds up what came, is silent then, and waits
    // for nobody.
    double starved_s = 0;
  };
  // seconds - starved_s falls within a silence only when the worker is stopped, or is continued:
  // whoever asks twice has the same answer.
  Silence Now(const WorkerState& worker, const LastEvent& last);

 private:
  void LookAgainIn(double seconds);
  Silence Seen(const WorkerState& worker, const LastEvent& last) const;
  // Of `passed_s` since the event: without the time in which it worked or was kept from a
  // processor. In a call that waits for peers, who only polls is not kept from it.
  double AwakeSeconds(const LastEvent& last, Ticks since, double passed_s) const;

  double quiet_seconds_;
  double deadline_seconds_;
  int ranks_;
  TickScale scale_;
  std::function<bool(pid_t)> has_cuda_driver_;
  bool starts_on_gpu_ = false;  // by the newest look
  ProgressProbe progress_;
  // What was last told of the silence that began at awake_since_. A wait for a
  // processor counts as awake until two looks have shown it.
  double awake_s_ = 0;
  Ticks awake_since_ = 0;
  std::optional<Ticks> overdue_since_;  // the silence that was reported
  Deadline next_look_ = Deadline::AfterNs(0);
  std::optional<Ticks> quiet_since_;  // the silence that was reported as quiet
  Deadline next_glance_ = Deadline::AfterNs(0);
};

}  // namespace lockstep::agent
