// One scenario a function: real agents and workers, small programs, and what must come of them.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include "core/base/deadline.h"
#include "core/base/process_stat.h"
#include "core/coordinator/testing/probe.h"

namespace lockstep::coordinator {
namespace {

using Kind = EventKind;

void Expect(bool condition, const std::string& what) { ProbeDriver::Expect(condition, what); }

verdict::RankEvidence EvidenceOf(ProbeDriver& c, int rank) {
  return c.coordinator().Collect()[static_cast<std::size_t>(rank)];
}

// False also for what is dead and waits for init to reap it. What was killed needs a processor for
// that.
bool Runs(int pid) {
  const Deadline bound = Deadline::AfterSeconds(60);
  while (!bound.Passed()) {
    const std::optional<ProcessStat> stat = StatOf(pid);
    if (!stat || stat->state == 'Z' || stat->state == 'X') return false;
    usleep(20'000);
  }
  return true;
}

// Messages, meeting, data, exit codes; two lifetimes unless the workers own MPI.
void TalkOnce(ProbeDriver& c, int lifetime) {
  c.Start();
  Expect(c.coordinator().lifetime() == lifetime, "lifetimes are counted");
  c.OrderAll("echo hello");
  const std::vector<std::string> echoes = c.AwaitEchoes();
  for (int rank = 0; rank < c.size(); ++rank) {
    Expect(
        echoes[static_cast<std::size_t>(rank)] == fmt::format("echo hello {} {}", rank, lifetime),
        "the echo is " + echoes[static_cast<std::size_t>(rank)]);
  }
  c.OrderAll("meet");
  std::string expected;
  for (int rank = 0; rank < c.size(); ++rank) expected += fmt::format("address of {};", rank);
  for (const std::string& echo : c.AwaitEchoes()) Expect(echo == expected, "met: " + echo);
  // More than an outbox holds (2730 records).
  c.OrderAll("stream 10000");
  for (int done = 0; done < c.size();) {
    done += c.Await(Kind::kMessage, -1).message.type == kDone ? 1 : 0;
  }
  for (int rank = 0; rank < c.size(); ++rank) {
    Expect(c.CheckData(rank) == 10000, "all data is there before the message that follows it");
    c.Order(rank, fmt::format("exit {}", 3 * rank + lifetime));
  }
  Expect(c.coordinator().AwaitExits(Soon()), "workers leave by themselves");
  for (int i = 0; i < c.size(); ++i) {
    const Event exited = c.Await(Kind::kExited, -1);
    Expect(exited.exit_code == 3 * exited.rank + lifetime, "the exit code");
  }
  const std::vector<journal::Journal> journals = c.coordinator().Journals(100);
  for (const journal::Journal& journal : journals) {
    Expect(journal.events.size() == 101 && journal.events[99].kind == journal::EventKind::kExit &&
               journal.events[100].kind == journal::EventKind::kDeath,
           "journals end with exit and death");
  }
}

int Talk(ProbeDriver& c) {
  for (int lifetime = 0; lifetime < 3; ++lifetime) TalkOnce(c, lifetime);
  return 0;
}

int Large(ProbeDriver& c) {
  c.Start();
  std::string blob = "blob ";
  blob.resize(control::kMaxPayloadBytes);
  for (std::size_t i = 5; i < blob.size(); ++i) blob[i] = static_cast<char>(Mix64(i));
  for (int round = 0; round < 2; ++round) {
    c.OrderAll(blob);
    for (const std::string& echo : c.AwaitEchoes()) Expect(echo == blob, "large messages");
  }
  return 0;
}

// One random worker, at a random moment of streaming, many times.
int Killed(ProbeDriver& c) {
  for (int round = 0; round < 20; ++round) {
    c.StartStreams();
    const int victim = static_cast<int>(c.random().Below(static_cast<std::uint64_t>(c.size())));
    c.ExpectQuiet(c.random().Uniform() * 0.1);
    kill(c.pid(victim), SIGKILL);
    Expect(c.Await(Kind::kSignalled, victim).signal == SIGKILL, "the signal");
    const auto evidence = c.coordinator().Collect();
    for (int rank = 0; rank < c.size(); ++rank) {
      const verdict::RankEvidence& e = evidence[static_cast<std::size_t>(rank)];
      Expect(e.rank == rank, "evidence is by rank");
      Expect(e.state == (rank == victim ? verdict::ProcessState::kSignalled
                                        : verdict::ProcessState::kRunning),
             fmt::format("state {} of rank {}", static_cast<int>(e.state), rank));
      Expect(!e.journal.events.empty(), "a journal");
    }
    Expect(!c.coordinator().AwaitExits(Soon()), "one was killed");
    c.End();
    c.ExpectQuiet(0);
    c.CheckData(victim);
    for (int rank = 0; rank < c.size(); ++rank) {
      Expect(kill(c.pid(rank), 0) != 0, "no worker is left");
    }
  }
  return 0;
}

constexpr double kSilenceOfStopped = 3;

// In any order: before it stops, a rank may have waited for a processor.
void AwaitStoppedAndOverdue(ProbeDriver& c, int victim) {
  bool stopped = false, overdue = false;
  while (!stopped || !overdue) {
    const Event event = c.AwaitAny({Kind::kStopped, Kind::kOverdue});
    if (event.rank != victim) continue;
    if (event.kind == Kind::kStopped) Expect(event.signal == SIGSTOP, "stopped by SIGSTOP");
    (event.kind == Kind::kStopped ? stopped : overdue) = true;
  }
}

int Stopped(ProbeDriver& c) {
  c.StartStreams();
  const int victim = static_cast<int>(c.random().Below(static_cast<std::uint64_t>(c.size())));
  c.ExpectStreams(kSilenceOfStopped);  // who streams is not silent
  kill(c.pid(victim), SIGSTOP);
  AwaitStoppedAndOverdue(c, victim);
  const verdict::RankEvidence evidence = EvidenceOf(c, victim);
  Expect(evidence.state == verdict::ProcessState::kStopped && evidence.signal == SIGSTOP,
         "is stopped");
  c.ExpectStreams(kSilenceOfStopped, victim);  // reported once
  kill(c.pid(victim), SIGCONT);
  c.Await(Kind::kContinued, victim);
  c.ExpectStreams(kSilenceOfStopped);
  kill(c.pid(victim), SIGSTOP);
  AwaitStoppedAndOverdue(c, victim);  // another silence
  c.End();                            // also of one that is stopped
  c.ExpectQuiet(0.1);
  return 0;
}

// A large allocation is no silence, one that stands still is.
int Allocating(ProbeDriver& c) {
  c.Start();
  c.Order(0, "allocate 3");
  const Event allocated = c.Await(Kind::kMessage, 0, {Kind::kOverdue});
  Expect(allocated.message.type == kDone, "it is done before it is silent");
  c.Await(Kind::kOverdue, 0);
  c.End();
  return 0;
}

int Silent(ProbeDriver& c) {
  c.Start();
  c.ExpectQuiet(2.5);  // who waits for orders may be silent
  c.Order(0, "wait");
  c.Order(c.size() - 1, "sleep");
  c.Await(Kind::kOverdue, -1);
  c.Await(Kind::kOverdue, -1);
  const auto all = c.coordinator().Collect();
  const verdict::RankEvidence& waits = all.front();
  const verdict::RankEvidence& sleeps = all.back();
  fmt::print("{}\n{}\n", waits.system, sleeps.system);
  Expect(!waits.asleep && waits.system.find("in poll") != std::string::npos, waits.system);
  Expect(sleeps.asleep && sleeps.system.find("asleep in pause") == 0, sleeps.system);
  Expect(sleeps.system.find("SleepForEver@launch_probe") != std::string::npos ||
             sleeps.system.find("no stack") != std::string::npos,
         sleeps.system);
  Expect(sleeps.seconds_silent > 1 && !sleeps.idle, "its silence");
  for (int rank = 1; rank + 1 < c.size(); ++rank) {
    Expect(all[static_cast<std::size_t>(rank)].idle, "the others are idle");
  }
  c.Order(0, "echo never heard");
  c.ExpectQuiet(1.5);
  return 0;
}

int Stubborn(ProbeDriver& c) {
  c.Start();
  c.OrderAll("stubborn");
  const std::vector<std::string> children = c.AwaitEchoes();
  for (int rank = 0; rank < c.size(); ++rank) kill(c.pid(rank), SIGTERM);
  c.ExpectQuiet(0.3);
  c.End();
  c.End();  // idempotent
  for (const std::string& child : children) {
    Expect(!Runs(std::atoi(child.c_str())), "nothing that a worker started is left");
  }
  TalkOnce(c, 1);
  return 0;
}

int Crashed(ProbeDriver& c) {
  c.Start();
  c.Order(c.size() - 1, "crash");
  Expect(c.Await(Kind::kSignalled, c.size() - 1).signal == SIGABRT, "aborted");
  c.Order(0, "exit 9");
  Expect(c.Await(Kind::kExited, 0).exit_code == 9, "exit 9");
  const auto evidence = c.coordinator().Collect();
  Expect(
      evidence.front().state == verdict::ProcessState::kExited && evidence.front().exit_code == 9,
      "evidence of an exit");
  Expect(evidence.back().state == verdict::ProcessState::kSignalled &&
             evidence.back().signal == SIGABRT,
         "evidence of a crash");
  return 1;
}

// An agent that waits for a processor is late, not lost: its worker's evidence is awaited.
int AgentLate(ProbeDriver& c) {
  c.Start();
  const int late = c.size() - 1;
  const int agent = c.coordinator().agents()[static_cast<std::size_t>(late)].pid;
  kill(agent, SIGSTOP);
  std::thread other([agent] {
    sleep(6);  // longer than a stack may take
    kill(agent, SIGCONT);
  });
  const verdict::RankEvidence evidence = EvidenceOf(c, late);
  other.join();
  Expect(evidence.state == verdict::ProcessState::kRunning, "its worker runs: " + evidence.system);
  for (const verdict::RankPlace& place : c.coordinator().places())
    Expect(place.loss == verdict::Loss::kNone, "nobody is lost");
  c.End();
  return 0;
}

int FollowerKilled(ProbeDriver& c) {
  c.StartStreams();
  c.ExpectQuiet(0.2);
  const int victim = c.size() - 1;
  kill(c.coordinator().agents()[static_cast<std::size_t>(victim)].pid, SIGKILL);
  c.Await(Kind::kLost, victim);
  const auto evidence = c.coordinator().Collect();
  Expect(evidence[static_cast<std::size_t>(victim)].state == verdict::ProcessState::kLost,
         "is lost");
  Expect(evidence[0].state == verdict::ProcessState::kRunning, "rank 0 is not");
  fmt::print("lost\n");
  std::fflush(stdout);
  return 3;
}

int CoordinatorKilled(ProbeDriver& c) {
  c.StartStreams();
  c.ExpectQuiet(0.3);
  kill(getpid(), SIGKILL);
  return 0;
}

// The successor is stopped meanwhile, and goes on later.
int SuccessorLate(ProbeDriver& c) {
  c.StartStreams();
  c.ExpectQuiet(0.3);
  kill(c.coordinator().agents()[1].pid, SIGSTOP);
  return kill(getpid(), SIGKILL);
}

// An agent that hears its dismissal and the coordinator's end at once, because it was stopped.
int DismissedLate(ProbeDriver& c) {
  c.Start();
  c.End();
  kill(c.coordinator().agents()[1].pid, SIGSTOP);
  c.coordinator().Dismiss(ExitCode::kInconclusive);
  std::_Exit(static_cast<int>(ExitCode::kInconclusive));
}

// An agent that was stopped hears that it was taken for lost.
int AgentTakenForLost(ProbeDriver& c) {
  c.StartStreams();
  c.ExpectQuiet(0.2);
  kill(c.coordinator().agents()[1].pid, SIGSTOP);
  c.Await(Kind::kLost, 1);
  return 3;
}

// The others take it for lost, and the launcher ends it.
int CoordinatorStopped(ProbeDriver& c) {
  c.StartStreams();
  c.ExpectQuiet(0.3);
  kill(getpid(), SIGSTOP);
  const std::vector<verdict::RankPlace> places = c.coordinator().places();
  c.Await(Kind::kLost, -1);
  Expect(verdict::WeAreCutOff(c.coordinator().places()) && !verdict::WeAreCutOff(places),
         "the others went on without us");
  return 3;
}

int Terminate(ProbeDriver& c) {
  c.StartStreams();
  fmt::print("running\n");
  std::fflush(stdout);
  // Each agent hears the signal itself; rank 0's may be the last.
  for (std::set<int> told; told.size() < static_cast<std::size_t>(c.size());) {
    told.insert(c.AwaitAny({Kind::kTerminate, Kind::kLost}).rank);
  }
  // The launcher gives a minute, so it is waited for.
  const int late = c.coordinator().agents()[1].pid;
  kill(late, SIGSTOP);
  std::thread other([late] {
    sleep(1);
    kill(late, SIGCONT);
  });
  c.End();
  other.join();
  for (int rank = 0; rank < c.size(); ++rank) {
    Expect(c.CheckData(rank) > 0, "data is kept");
  }
  return 3;
}

void MpiUp(ProbeDriver& c) {
  c.Start();
  c.OrderAll("mpi_init");
  for (int rank = 0; const std::string& echo : c.AwaitEchoes()) {
    Expect(echo.starts_with(fmt::format("rank {} of {}, was", rank++, c.size())), echo);
  }
  Expect(c.coordinator().StartWorkers().code() == StatusCode::kUnsupported, "one lifetime only");
}

int Mpi(ProbeDriver& c) {
  MpiUp(c);
  c.OrderAll("mpi_loop 200");
  for (const std::string& echo : c.AwaitEchoes()) Expect(echo == "sums are right", echo);
  c.OrderAll("mpi_finalize");
  c.AwaitEchoes();
  c.OrderAll("exit 0");
  Expect(c.coordinator().AwaitExits(Soon()), "workers leave by themselves");
  return 0;
}

int MpiKilled(ProbeDriver& c) {
  MpiUp(c);
  c.OrderAll("mpi_loop 0");
  c.ExpectQuiet(0.2 + 0.3 * c.random().Uniform());
  const int victim = static_cast<int>(c.random().Below(static_cast<std::uint64_t>(c.size())));
  kill(c.pid(victim), SIGKILL);
  const int survivor = victim == 0 ? 1 : 0;
  // In any order: on a busy host a death may be told later than the silence of those who wait.
  bool ended = false, overdue = false;
  while (!ended || !overdue) {
    const Event event = c.AwaitAny({Kind::kSignalled, Kind::kOverdue});
    if (event.kind == Kind::kSignalled) {
      Expect(event.rank == victim && event.signal == SIGKILL, "the signal");
      ended = true;
    } else {
      overdue = overdue || event.rank == survivor;
    }
  }
  const verdict::RankEvidence evidence = EvidenceOf(c, survivor);
  fmt::print("{}\n", evidence.system);
  Expect(evidence.state == verdict::ProcessState::kRunning && !evidence.asleep, "a survivor spins");
  Expect(evidence.system.find("MPI_Allreduce@libmpi") != std::string::npos ||
             evidence.system.find("no stack") != std::string::npos,
         "the stack shows where: " + evidence.system);
  return 3;
}

}  // namespace

const std::map<std::string, ProbeScenario>& Scenarios() {
  static const std::map<std::string, ProbeScenario> scenarios = {
      {"talk", {false, Talk}},
      {"large", {false, Large}},
      {"killed", {false, Killed}},
      {"stopped", {false, Stopped, kSilenceOfStopped}},
      {"silent", {false, Silent, 1}},
      {"allocating", {false, Allocating, 1}},
      {"stubborn", {false, Stubborn}},
      {"crashed", {false, Crashed}},
      {"agent_late", {false, AgentLate}},
      {"follower_killed", {false, FollowerKilled}},
      {"coordinator_killed", {false, CoordinatorKilled}},
      {"successor_late", {false, SuccessorLate}},
      {"dismissed_late", {false, DismissedLate}},
      {"agent_taken_for_lost", {false, AgentTakenForLost}},
      {"coordinator_stopped", {false, CoordinatorStopped}},
      {"terminate", {false, Terminate}},
      {"mpi", {true, Mpi}},
      {"mpi_killed", {true, MpiKilled, 3}},
  };
  return scenarios;
}

}  // namespace lockstep::coordinator
