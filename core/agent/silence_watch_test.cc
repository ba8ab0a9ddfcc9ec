// What counts as silence of a rank that has queued a call, and of one whose call has begun.
#include "core/agent/silence_watch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "gtest/gtest.h"

namespace lockstep::agent {
namespace {

using journal::EventKind;

constexpr std::size_t kEvents = 16;

// What a worker wrote: calls of one communicator, by kind and sequence.
class Written {
 public:
  void Add(EventKind kind, std::uint64_t sequence) {
    journal::JournalEvent event;
    event.kind = kind;
    event.sequence = sequence;
    writer_.Append(event);
  }
  SilenceWatch::LastEvent Newest() const { return SilenceWatch::Newest(reader_); }

 private:
  struct alignas(64) Memory {
    std::byte bytes[64 * (kEvents + 2)] = {};
  };
  Memory memory_;
  journal::JournalWriter writer_ = journal::JournalWriter::Create(memory_.bytes, kEvents);
  journal::JournalReader reader_{memory_.bytes, kEvents};
};

// Pages that this process was not given yet.
void TouchNewPages(int pages) {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < pages; ++i) {
    void* const page =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    *static_cast<volatile char*>(page) = 1;
    munmap(page, size);
  }
}

TEST(SilenceWatch, ACallQueuedBehindOneThatHasBegunIsNoWorkOfTheRank) {
  Written written;
  EXPECT_FALSE(written.Newest().has_value());
  written.Add(EventKind::kEnqueue, 0);
  EXPECT_EQ(written.Newest()->kind, EventKind::kEnqueue);
  written.Add(EventKind::kStart, 0);
  written.Add(EventKind::kEnqueue, 1);
  EXPECT_EQ(written.Newest()->kind, EventKind::kStart);
  EXPECT_EQ(written.Newest()->sequence, 1u) << "it is the newest event all the same";
  written.Add(EventKind::kEnd, 0);
  written.Add(EventKind::kEnqueue, 2);
  EXPECT_EQ(written.Newest()->kind, EventKind::kEnqueue);
}

// Memory that is given is work before the call, for as long as it takes; none of a call that waits
// for peers.
TEST(SilenceWatch, WorkBeforeAQueuedCallPutsTheVerdictOff) {
  const TickScale scale{.ns_per_tick = 1};
  SilenceWatch watch(AgentOptions{}, scale, 2);
  watch.Begin();
  journal::JournalEvent event;
  const Ticks before = NowTicks();
  event.ticks = before - 1'000'000'000'000;  // minutes ago
  const double silent = scale.DurationNs(event.ticks, before) * 1e-9;
  const WorkerState worker;
  const auto look = [&](EventKind kind) {
    event.kind = kind;
    watch.LookForProgress(getpid(), worker, event);
    return watch.Now(worker, event).seconds;
  };
  look(EventKind::kEnqueue);
  TouchNewPages(1);
  EXPECT_GT(look(EventKind::kEnqueue), silent - 100) << "one page is no work";
  const std::int64_t begin_ns = MonotonicNs();
  const double seconds = look(EventKind::kEnqueue);
  const std::int64_t busy_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) + 300'000'000;
  while (ClockNs(CLOCK_THREAD_CPUTIME_ID) < busy_ns) TouchNewPages(1'000);
  // No more passes between two looks than around both, whoever has the processor; of that the pages
  // took their processor time.
  const double later = look(EventKind::kEnqueue);
  EXPECT_LT(later, seconds + SecondsSince(begin_ns) - 0.2) << "many are";
  EXPECT_GE(look(EventKind::kStart), silent);
}

constexpr std::int64_t kNowNs = 10'000'000'000'000;
constexpr pid_t kNobody = 0;  // of whom no look tells anything

Ticks Before(Ticks seconds) { return kNowNs - seconds * 1'000'000'000; }

// It may have been silent for long, for a reason of its own. Whoever stopped it may continue it.
TEST(SilenceWatch, AStopCountsFromItsBeginning) {
  std::int64_t now_ns = kNowNs;
  const VirtualTime time(&now_ns);
  SilenceWatch watch(AgentOptions{.silence_deadline_seconds = 4000}, {.ns_per_tick = 1}, 2);
  watch.Begin();
  const journal::JournalEvent in_call{.ticks = Before(8000), .kind = EventKind::kStart};
  WorkerState worker;
  const auto is_overdue = [&] { return watch.IsNewlyOverdue(kNobody, worker, in_call); };
  EXPECT_TRUE(is_overdue());
  EXPECT_FALSE(is_overdue()) << "it was told";
  worker.process = verdict::ProcessState::kStopped;
  worker.stopped = Before(3000);
  EXPECT_FALSE(is_overdue()) << "not for so long";
  EXPECT_DOUBLE_EQ(watch.Now(worker, in_call).seconds, 3000);
  worker.stopped = Before(5000);
  EXPECT_TRUE(is_overdue());
  worker.stopped = Before(9000);
  EXPECT_DOUBLE_EQ(watch.Now(worker, in_call).seconds, 8000) << "its silence, if that is shorter";
  worker.stopped = Before(0);
  EXPECT_FALSE(is_overdue()) << "another stop";
  worker.process = verdict::ProcessState::kRunning;
  EXPECT_DOUBLE_EQ(watch.Now(worker, in_call).seconds, 8000) << "it was silent all the time";
  EXPECT_TRUE(is_overdue()) << "told again: the stop had hidden it";
}

// The kernel tells of a wait for a processor when it ends.
TEST(ProgressProbe, AWaitThatLastsIsAWait) {
  using Times = ProgressProbe::Times;
  const auto held_up_s = [](const std::vector<Times>& looks) {
    ProgressProbe::Threads threads;
    ProgressProbe probe({.ns_per_tick = 1}, &ProgressProbe::HostIsShort,
                        [&](pid_t) { return threads; });
    const Ticks since = NowTicks();
    for (const Times& times : looks) {
      threads[1] = times;
      probe.Look(kNobody, since, 100);
    }
    EXPECT_EQ(probe.StarvedSeconds(since), probe.HeldUpSeconds(since));
    return probe.HeldUpSeconds(since);
  };
  const Times ready{.ran_ns = 5, .runs = 3, .ready = true};
  const Times asleep{.ran_ns = 5, .runs = 3};
  EXPECT_GT(held_up_s({ready, ready}), 0);
  EXPECT_EQ(held_up_s({asleep, ready}), 0) << "it may have begun to wait just now";
  EXPECT_EQ(held_up_s({ready, asleep}), 0);
  EXPECT_EQ(held_up_s({ready, {.ran_ns = 6, .runs = 3, .ready = true}}), 0) << "it ran";
  EXPECT_EQ(held_up_s({ready, {.ran_ns = 5, .runs = 4, .ready = true}}), 0) << "it ran";
  const Times ran{.ran_ns = 6, .waited_ns = 1'000'000'000'000'000, .runs = 4};
  EXPECT_DOUBLE_EQ(held_up_s({ready, ready, ran}), 1e6) << "told now, and counted once";
}

// A context on a GPU is made under locks of a driver that all processes share.
TEST(SilenceWatch, AStartInCudasDriverIsSilentWhenItTakesLong) {
  std::int64_t now_ns = kNowNs;
  const VirtualTime time(&now_ns);
  bool loaded = true;
  SilenceWatch watch(AgentOptions{.silence_deadline_seconds = 5}, {.ns_per_tick = 1}, 2,
                     [&](pid_t) { return loaded; });
  journal::JournalEvent event{.kind = EventKind::kPhase};
  WorkerState worker;
  const auto silent_s = [&](journal::Phase phase, Ticks seconds) {
    event.phase = phase;
    event.ticks = Before(seconds);
    watch.Begin();
    watch.LookForProgress(kNobody, worker, event);
    return watch.Now(worker, event).seconds;
  };
  for (const journal::Phase phase : {journal::Phase::kStart, journal::Phase::kConnect}) {
    EXPECT_DOUBLE_EQ(silent_s(phase, 29), 0);
    EXPECT_FALSE(watch.IsNewlyOverdue(kNobody, worker, event));
    EXPECT_DOUBLE_EQ(silent_s(phase, 31), 31) << "all of it was";
    EXPECT_TRUE(watch.IsNewlyOverdue(kNobody, worker, event));
    EXPECT_FALSE(watch.IsNewlyOverdue(kNobody, worker, event)) << "it was told";
  }
  EXPECT_DOUBLE_EQ(silent_s(journal::Phase::kCompute, 29), 29);
  event.kind = EventKind::kSplit;
  EXPECT_DOUBLE_EQ(silent_s(journal::Phase::kConnect, 29), 29) << "in a call that waits for peers";
  event.kind = EventKind::kPhase;
  worker.process = verdict::ProcessState::kStopped;
  worker.stopped = Before(28);
  EXPECT_DOUBLE_EQ(silent_s(journal::Phase::kStart, 29), 28) << "a stopped one waits for nobody";
  worker.process = verdict::ProcessState::kRunning;
  loaded = false;
  EXPECT_DOUBLE_EQ(silent_s(journal::Phase::kStart, 29), 29);
}

// It idles: what it waits for is not for its peers to give.
TEST(SilenceWatch, AStopOfOneThatIdlesEndsNoSilence) {
  std::int64_t now_ns = kNowNs;
  const VirtualTime time(&now_ns);
  SilenceWatch watch(AgentOptions{}, {.ns_per_tick = 1}, 2);
  watch.Begin();
  const journal::JournalEvent idles{.ticks = Before(8000), .kind = EventKind::kIdle};
  WorkerState worker;
  const auto silent_s = [&] {
    watch.LookForProgress(kNobody, worker, idles);
    return watch.Now(worker, idles).seconds;
  };
  worker.process = verdict::ProcessState::kStopped;
  worker.stopped = Before(3000);
  EXPECT_DOUBLE_EQ(silent_s(), 3000);
  worker.process = verdict::ProcessState::kRunning;
  EXPECT_DOUBLE_EQ(silent_s(), 8000);
}

}  // namespace
}  // namespace lockstep::agent
