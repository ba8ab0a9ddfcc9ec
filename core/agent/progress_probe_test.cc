// Processes that are given memory, wait for a processor, or do neither.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "core/agent/silence_watch.h"
#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/base/file_text.h"
#include "core/base/process_stat.h"
#include "gtest/gtest.h"

namespace lockstep::agent {
namespace {

constexpr Ticks kSilence = 7;
constexpr std::int64_t kPolls = 100;

// A process that does `work` again and again, on the first processor that it may use. It has one
// thread: behind fork(3), ThreadSanitizer begins another, which waits for a processor, too.
class Busy {
 public:
  explicit Busy(const std::function<void()>& work) : pid_(_Fork()) {
    LOCKSTEP_CHECK(pid_ >= 0, "a process");
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed)) ++cpu;
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    while (true) work();
  }
  ~Busy() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

// Waits, for a minute at most.
template <typename Condition>
bool Await(const Condition& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    usleep(1'000);
  }
  return condition();
}

struct SchedStat {
  std::int64_t ran_ns, waited_ns, runs;
};
SchedStat SchedStatOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  SchedStat stat{};
  file >> stat.ran_ns >> stat.waited_ns >> stat.runs;
  return stat;
}

std::string FirstWord(pid_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  std::string word;
  file >> word;
  return word;
}

bool HasComputed(pid_t pid) {
  return Await([pid] { return SchedStatOf(pid).ran_ns > 20'000'000; });
}

TEST(ProgressProbe, WhoSleepsShowsNone) {
  const Busy sleeper([] { pause(); });
  // Until then it may be given memory, and wait for a processor.
  ASSERT_TRUE(
      Await([&] { return FirstWord(sleeper.pid(), "syscall") == std::to_string(SYS_pause); }));
  ProgressProbe life;
  life.Look(sleeper.pid(), kSilence - 1, kPolls);
  usleep(100'000);
  life.Look(sleeper.pid(), kSilence, kPolls);
  EXPECT_EQ(life.BusySeconds(kSilence), 0);
  EXPECT_EQ(life.HeldUpSeconds(kSilence), 0);
}

void TouchANewPage() {
  char* page = static_cast<char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *page = 1;
  munmap(page, 4096);
}

TEST(ProgressProbe, MemoryThatComesIsWork) {
  const Busy grower(TouchANewPage);
  ProgressProbe life;
  life.Look(grower.pid(), kSilence - 1, kPolls);
  EXPECT_TRUE(Await([&] {
    life.Look(grower.pid(), kSilence, kPolls);
    return life.BusySeconds(kSilence) - life.HeldUpSeconds(kSilence) > 0.1;
  }));
}

// It is no more work than it takes: of a thread that spins, too, such as one whose pages the kernel
// moves between memories now and then.
TEST(ProgressProbe, APageNowAndThenIsNone) {
  ProgressProbe life;
  life.Look(getpid(), kSilence - 1, kPolls);
  const std::int64_t before_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  TouchANewPage();
  while (ClockNs(CLOCK_THREAD_CPUTIME_ID) < before_ns + 2'000'000'000) {
  }
  life.Look(getpid(), kSilence, kPolls);
  EXPECT_LT(life.BusySeconds(kSilence) - life.HeldUpSeconds(kSilence), 1);
}

TEST(ProgressProbe, WhoSharesItsProcessorIsStarved) {
  const Busy one([] {}), two([] {}), three([] {});
  ASSERT_TRUE(HasComputed(one.pid()));  // and has all the memory that it needs
  ProgressProbe life;
  life.Look(one.pid(), kSilence, kPolls);
  EXPECT_TRUE(Await([&] {
    life.Look(one.pid(), kSilence, kPolls);
    return life.HeldUpSeconds(kSilence) > 0.1;
  }));
  // Nothing is known of a silence that was not looked at.
  EXPECT_EQ(life.HeldUpSeconds(kSilence + 1), 0);
}

// Its ticks go on, and the kernel's clock does not.
TEST(ProgressProbe, WhileTheMachineIsSuspendedNoTimePasses) {
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  std::int64_t now_ns = kHourNs;
  const VirtualTime time(&now_ns);
  ProgressProbe life;
  const auto since = static_cast<Ticks>(now_ns + 1);
  life.Look(getpid(), kSilence, kPolls);
  now_ns += kHourNs;
  EXPECT_NEAR(life.PassedSeconds(kSilence, NowTicks()), 3600, 60) << "before the first look";
  EXPECT_LT(life.PassedSeconds(since, NowTicks()), 60) << "not looked at yet";
  life.Look(getpid(), since, kPolls);
  now_ns += kHourNs;
  life.Look(getpid(), since, kPolls);
  now_ns += kHourNs;
  EXPECT_LT(life.PassedSeconds(since, NowTicks()), 60);
  // A silence that begins behind it is all there.
  life.Look(getpid(), NowTicks() - 1'000, kPolls);
  EXPECT_NEAR(life.PassedSeconds(NowTicks() - 1'000, NowTicks()), 1e-6, 1e-7);
}

// A look comes late where the agent itself waits for a processor.
TEST(ProgressProbe, AWaitBeforeTheFirstLookInASilenceCounts) {
  const Busy one([] {}), two([] {}), three([] {});
  ProgressProbe life;
  life.Look(one.pid(), kSilence, kPolls);
  const std::int64_t before_ns = SchedStatOf(one.pid()).waited_ns;
  ASSERT_TRUE(Await([&] { return SchedStatOf(one.pid()).waited_ns > before_ns + 100'000'000; }));
  life.Look(one.pid(), kSilence + 1, kPolls);
  EXPECT_GE(life.HeldUpSeconds(kSilence + 1), 0.1);
  EXPECT_EQ(life.StarvedSeconds(kSilence + 1), 0) << "whether it polls is not known yet";
}

// It may be the one that others wait for: to give a call up, for example.
TEST(ProgressProbe, AThreadThatBeginsInASilenceIsStarvedFromItsBeginning) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd told(ends[0]), teller(ends[1]);
  const Busy parent([&] {
    char byte;
    if (read(told.get(), &byte, 1) == 1) {
      std::thread([] {
        while (true) {
        }
      }).detach();
    }
  });
  const Busy two([] {}), three([] {});
  ASSERT_TRUE(
      Await([&] { return FirstWord(parent.pid(), "syscall") == std::to_string(SYS_read); }));
  ProgressProbe life;
  life.Look(parent.pid(), kSilence, kPolls);
  ASSERT_EQ(write(teller.get(), "x", 1), 1);
  ASSERT_TRUE(Await([&] {
    for (const auto& entry : EntriesOf("/proc/" + std::to_string(parent.pid()) + "/task")) {
      const pid_t thread = std::atoi(entry.filename().c_str());
      if (thread != parent.pid() && SchedStatOf(thread).waited_ns > 100'000'000) return true;
    }
    return false;
  }));
  life.Look(parent.pid(), kSilence, kPolls);
  EXPECT_GE(life.StarvedSeconds(kSilence), 0.1);
}

// They ask again and again whether there is news, and there is none: they need no processor for
// that, or one that they give away.
TEST(ProgressProbe, WhoOnlyPollsIsNotStarved) {
  const Busy yielder([] { sched_yield(); }), sleeper([] { usleep(100); }), two([] {}), three([] {});
  for (const Busy* poller : {&yielder, &sleeper}) {
    ProgressProbe life, seldom;
    EXPECT_TRUE(Await([&] {
      life.Look(poller->pid(), kSilence, kPolls);
      return life.HeldUpSeconds(kSilence) > 0.1 && life.StarvedSeconds(kSilence) == 0;
    }));
    EXPECT_TRUE(Await([&] {
      seldom.Look(poller->pid(), kSilence, std::int64_t{1} << 40);
      return seldom.StarvedSeconds(kSilence) > 0.1;
    })) << "so few polls may all have taken something";
  }
  ProgressProbe computes;
  EXPECT_TRUE(Await([&] {
    computes.Look(two.pid(), kSilence, kPolls);
    return computes.StarvedSeconds(kSilence) > 0.3;
  }));
}

// A rank that shares its processors with two others: after `event`, and in a call that it entered
// at the same moment.
struct Starved {
  Starved(journal::EventKind kind, journal::Phase phase)
      : event{.ticks = NowTicks(), .kind = kind, .phase = phase},
        in_call{.ticks = event.ticks, .kind = journal::EventKind::kStart} {
    watch.Begin();
  }
  bool IsExcused() {
    return watch.Now(worker, event).seconds + 0.1 < watch.Now(worker, in_call).seconds;
  }

  const Busy one{[] {}}, two{[] {}}, three{[] {}};
  SilenceWatch watch{AgentOptions{}, TickScale{.ns_per_tick = 1}, 2};
  const WorkerState worker;
  const journal::JournalEvent event;
  const journal::JournalEvent in_call;
};

TEST(ProgressProbe, WhoConnectsAndWaitsForAProcessorIsNotSilentForIt) {
  Starved rank(journal::EventKind::kPhase, journal::Phase::kConnect);
  EXPECT_TRUE(Await([&] {
    rank.watch.LookForProgress(rank.one.pid(), rank.worker, rank.event);
    // In a call its wait for peers counts, and what it waited for a processor is told beside it.
    return rank.IsExcused() && rank.watch.Now(rank.worker, rank.in_call).starved_s > 0.1;
  }));
  EXPECT_EQ(rank.watch.Now(rank.worker, rank.event).starved_s, 0);
}

// How much has to come in a call tells how often who takes it has to look.
TEST(ProgressProbe, WhoPollsInACallForMuchMayBeTakingIt) {
  const Busy poller([] { sched_yield(); }), two([] {}), three([] {});
  SilenceWatch little_watch(AgentOptions{}, TickScale{.ns_per_tick = 1}, 2);
  SilenceWatch much_watch(AgentOptions{}, TickScale{.ns_per_tick = 1}, 2);
  little_watch.Begin();
  much_watch.Begin();
  const WorkerState worker;
  const journal::JournalEvent little{
      .ticks = NowTicks(), .count = 1, .kind = journal::EventKind::kStart};
  journal::JournalEvent much = little;
  much.count = std::int64_t{1} << 40;
  EXPECT_TRUE(Await([&] {
    little_watch.LookForProgress(poller.pid(), worker, little);
    much_watch.LookForProgress(poller.pid(), worker, much);
    return little_watch.Now(worker, little).starved_s == 0 &&
           much_watch.Now(worker, much).starved_s > 0.1;
  }));
}

// The kernel tells of a wait at its end. What was enough to end a run is enough to say why.
TEST(ProgressProbe, WhatWasCalledAwakeIsNotTakenBack) {
  Starved rank(journal::EventKind::kPhase, journal::Phase::kConnect);
  double awake_s = 0;
  EXPECT_TRUE(Await([&] {
    rank.watch.LookForProgress(rank.one.pid(), rank.worker, rank.in_call);
    const SilenceWatch::Silence silence = rank.watch.Now(rank.worker, rank.in_call);
    EXPECT_GT(silence.seconds - silence.starved_s, awake_s - 1e-9);
    awake_s = silence.seconds - silence.starved_s;
    return silence.starved_s > 0.5;
  }));
}

// Nobody reports it as overdue, and all the same it is known what it waited for.
TEST(ProgressProbe, WhoLeavesAndWaitsForAProcessorIsNotSilentForIt) {
  Starved rank(journal::EventKind::kExit, journal::Phase::kFinalize);
  EXPECT_TRUE(Await([&] {
    EXPECT_FALSE(rank.watch.IsNewlyOverdue(rank.one.pid(), rank.worker, rank.event));
    return rank.IsExcused();
  }));
}

// A process that the kernel is ending: the first of a namespace, which waits there until all that
// were in it are gone. They are dead, and their parent is to be told to take note of each.
class Ending {
 public:
  Ending() {
    LOCKSTEP_CHECK(pipe(ends_) == 0 && pipe(pids_) == 0 && (parent_ = _Fork()) >= 0, "a process");
    if (parent_ == 0) BeParent();
    close(std::exchange(pids_[1], -1));
  }
  ~Ending() {
    kill(parent_, SIGKILL);
    waitpid(parent_, nullptr, 0);
    for (const int fd : {ends_[0], ends_[1], pids_[0]}) close(fd);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  // 0: such a namespace is not allowed here; negative: it failed.
  pid_t Begin() {
    pid_t pid = -1;
    return read(pids_[0], &pid, sizeof pid) == sizeof pid ? pid : -1;
  }
  void GoOn() { ASSERT_EQ(write(ends_[1], "x", 1), 1); }

 private:
  [[noreturn]] void BeParent() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool allowed = unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
    pid_t all[3] = {};
    for (pid_t& pid : all) {
      if (!allowed) break;
      pid = _Fork();
      if (pid < 0) _exit(1);
      while (pid == 0) pause();
    }
    if (allowed) kill(all[0], SIGKILL);
    if (write(pids_[1], &all[0], sizeof all[0]) < 0) _exit(1);
    char byte;
    for (int next = 1; next < 3 && read(ends_[0], &byte, 1) == 1; ++next)
      waitpid(all[next], nullptr, 0);
    _exit(0);
  }

  int ends_[2] = {}, pids_[2] = {};
  pid_t parent_ = -1;
};

// No run delay tells of a wait for a lock whose holder gets no processor.
TEST(ProgressProbe, AnEndThatGoesOnWhileProcessorsAreShortIsHeldUp) {
  Ending ending;
  const pid_t pid = ending.Begin();
  ASSERT_GE(pid, 0);
  if (pid == 0) GTEST_SKIP() << "no namespace of processes may be made here";
  ASSERT_TRUE(Await([&] {
    const auto stat = StatOf(pid);
    return stat && stat->ending() && stat->state == 'S';
  }));
  ProgressProbe idle({.ns_per_tick = 1}, [] { return false; });
  ProgressProbe busy({.ns_per_tick = 1}, [] { return true; });
  Ticks since = NowTicks();
  const auto look = [&] {
    for (ProgressProbe* probe : {&idle, &busy}) probe->Look(pid, since, kPolls);
  };
  look();
  since = NowTicks();
  look();
  EXPECT_EQ(busy.HeldUpSeconds(since), 0) << "it does not go on";
  const SchedStat before = SchedStatOf(pid);
  ending.GoOn();
  ASSERT_TRUE(Await([&] { return SchedStatOf(pid).runs > before.runs; }));
  look();
  const double held_up_s = busy.HeldUpSeconds(since);
  EXPECT_GT(held_up_s, idle.HeldUpSeconds(since));
  EXPECT_NEAR(idle.HeldUpSeconds(since),
              static_cast<double>(SchedStatOf(pid).waited_ns - before.waited_ns) * 1e-9, 1e-9)
      << "who looks now and then may be stuck";
  look();
  EXPECT_EQ(busy.HeldUpSeconds(since), held_up_s) << "it does not go on any more";
}

TEST(ProgressProbe, OfAProcessThatIsGoneThereAreNone) {
  pid_t pid = 0;
  {
    const Busy gone([] {});
    pid = gone.pid();
  }
  ProgressProbe life;
  life.Look(pid, kSilence, kPolls);
  life.Look(pid, kSilence, kPolls);
  EXPECT_EQ(life.BusySeconds(kSilence), 0);
  EXPECT_EQ(life.HeldUpSeconds(kSilence), 0);
}

}  // namespace
}  // namespace lockstep::agent
