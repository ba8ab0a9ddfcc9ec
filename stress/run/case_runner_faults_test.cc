// Faults that the case runner has others apply: when it orders them, whom it lets go on, and what
// counts as fired.
#include <csignal>

#include "core/control/codec.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "stress/links/link_rule.h"
#include "stress/run/testing/conduct.h"

namespace lockstep::stress::run {
namespace {

constexpr faults::FaultMoment kAtStart = {faults::FaultMoment::Kind::kTime, 0, 0.3};
constexpr faults::FaultMoment kAtIteration = {faults::FaultMoment::Kind::kIteration, 3, 0};

StressScript With(faults::FaultKind kind, faults::FaultMoment moment,
                  std::optional<double> seconds = {}) {
  return {.faults = {{kind, 1, moment, seconds}}};
}
coordinator::Script Healthy() {
  return {BothDone(), Finished(0), Finished(1), coordinator::Exited(0, 0),
          coordinator::Exited(1, 0)};
}

TEST(CaseRunnerFaults, AKillByTheClock) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kKill, kAtStart),
                    {coordinator::Ranks({verdict::At50(0), verdict::At50(1).Signalled(SIGKILL)}),
                     coordinator::When("signal 1"), coordinator::Signalled(1, SIGKILL)}),
            "signal 1 9\n"
            "fail: hung,killed after 0.301 s\n"
            "rank_killed of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AKillAtAPointOfTheProgram) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kKill, kAtIteration),
                    {Fired(1, 0),
                     coordinator::Ranks({verdict::At50(0), verdict::After49(1).Signalled(SIGKILL)}),
                     coordinator::When("signal 1"), coordinator::Signalled(1, SIGKILL)}),
            "signal 1 9\n"
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerFaults, SignalsToEnd) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kTerminate, kAtIteration),
                    {Fired(1, 0),
                     coordinator::Ranks({verdict::At50(0), verdict::After49(1).Signalled(SIGTERM)}),
                     coordinator::Signalled(1, SIGTERM)}),
            "signal 1 15\n"
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n"
            "fault 0 fired\n");
  EXPECT_EQ(Conduct(With(faults::FaultKind::kInterrupt, kAtIteration),
                    {Fired(1, 0),
                     coordinator::Ranks({verdict::At50(0), verdict::After49(1).Signalled(SIGINT)}),
                     coordinator::Signalled(1, SIGINT)}),
            "signal 1 2\n"
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AFaultOfTheClockFindsNobody) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kKill, kAtStart),
                    {coordinator::Ranks({verdict::After49(0), verdict::After49(1).Leaves(0)}),
                     Finished(1), coordinator::Exited(1, 0), coordinator::After(1), BothDone(),
                     Finished(0), coordinator::Exited(0, 0)}),
            "unknown: finished,finished\n"
            "because the fault did not fire: kill of rank 1 at time:0.3s\n"
            "fault 0 did not fire\n");
}

TEST(CaseRunnerFaults, AFaultThatIsNeverReached) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kKill, kAtIteration), Healthy()),
            "unknown: finished,finished\n"
            "because the fault did not fire: kill of rank 1 at iteration:3\n"
            "fault 0 did not fire\n");
}

TEST(CaseRunnerFaults, AStopThatEndsInTimeIsNone) {
  EXPECT_EQ(
      Conduct(With(faults::FaultKind::kStop, kAtIteration, 2),
              coordinator::Steps(
                  Fired(1, 0),
                  coordinator::Ranks({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)}),
                  coordinator::Stopped(1, SIGSTOP), Quiet(0), coordinator::When("send 1 applied"),
                  coordinator::Of(coordinator::EventKind::kContinued, 1), Healthy())),
      "signal 1 19\n"
      "signal 1 18\n"
      "send 1 applied\n"
      "pass: finished,finished\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AStopByTheClockLetsNobodyGoOn) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kStop, kAtStart, 2),
                    coordinator::Steps(coordinator::When("signal 1 18"),
                                       coordinator::Of(coordinator::EventKind::kContinued, 1),
                                       Healthy())),
            "signal 1 19\n"
            "signal 1 18\n"
            "pass: finished,finished\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AStopThatLastsLongerThanTheDeadline) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kStop, kAtIteration, 60),
                    {Fired(1, 0),
                     coordinator::Ranks({verdict::At50(0).Silent(6),
                                         verdict::After49(1).Stopped(SIGSTOP).Silent(6)}),
                     coordinator::Stopped(1, SIGSTOP), Quiet(0), coordinator::After(6),
                     coordinator::Of(coordinator::EventKind::kOverdue, 0)}),
            "signal 1 19\n"
            "fail: hung,stopped after 6.001 s\n"
            "rank_stopped of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AStopForEver) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kStop, kAtIteration),
                    {Fired(1, 0),
                     coordinator::Ranks({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)}),
                     coordinator::Stopped(1, SIGSTOP)}),
            "signal 1 19\n"
            "fail: hung,stopped after 0.001 s\n"
            "rank_stopped of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AnAgentsFaultHasFiredWhenItSaysSo) {
  EXPECT_EQ(
      Conduct(With(faults::FaultKind::kMemoryPressure, kAtIteration),
              coordinator::Steps(Fired(1, 0), coordinator::After(4),
                                 coordinator::OfFault(1, 0, control::FaultNews::kApplied, "limit"),
                                 Healthy())),
      "inject 1 fault 0: kind 2 amount 0 for 0 s\n"
      "send 1 applied\n"
      "pass: finished,finished\n"
      "fault 0 fired\n");
}

// On a busy machine an agent takes its time.
TEST(CaseRunnerFaults, NobodyIsSilentWhoWaitsForAFault) {
  EXPECT_EQ(
      Conduct(With(faults::FaultKind::kMemoryPressure, kAtIteration),
              coordinator::Steps(
                  Fired(1, 0), coordinator::After(40),
                  coordinator::Ranks({verdict::At50(0).Silent(40), verdict::After49(1).Silent(40)}),
                  coordinator::Of(coordinator::EventKind::kOverdue, 0), coordinator::After(6),
                  coordinator::OfFault(1, 0, control::FaultNews::kApplied, "limit"),
                  coordinator::Of(coordinator::EventKind::kOverdue, 0), coordinator::After(4),
                  Healthy())),
      "inject 1 fault 0: kind 2 amount 0 for 0 s\n"
      "send 1 applied\n"
      "pass: finished,finished\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerFaults, WhoIsSilentAfterAFaultIsHeldToIt) {
  EXPECT_EQ(
      Conduct(With(faults::FaultKind::kMemoryPressure, kAtIteration),
              coordinator::Steps(
                  Fired(1, 0), coordinator::After(40),
                  coordinator::OfFault(1, 0, control::FaultNews::kApplied, "limit"),
                  coordinator::Ranks({verdict::At50(0).Silent(40), verdict::After49(1).Silent(40)}),
                  coordinator::Of(coordinator::EventKind::kOverdue, 0), coordinator::After(5))),
      "inject 1 fault 0: kind 2 amount 0 for 0 s\n"
      "send 1 applied\n"
      "fail: hung,hung after 45.001 s\n"
      "rank_busy of 1, suspected\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AnAgentsFaultThatIsNeverApplied) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kMemoryPressure, kAtIteration),
                    coordinator::Steps(Fired(1, 0), Healthy())),
            "inject 1 fault 0: kind 2 amount 0 for 0 s\n"
            "unknown: finished,finished\n"
            "because the fault did not fire: memory_pressure of rank 1 at iteration:3\n"
            "fault 0 did not fire\n");
}

TEST(CaseRunnerFaults, AnAgentsFaultThatIsImpossible) {
  EXPECT_EQ(Conduct(With(faults::FaultKind::kMemoryPressure, kAtIteration),
                    coordinator::Steps(
                        Fired(1, 0),
                        coordinator::OfFault(1, 0, control::FaultNews::kImpossible, "no cgroup"),
                        Healthy())),
            "inject 1 fault 0: kind 2 amount 0 for 0 s\n"
            "send 1 applied\n"
            "unknown: finished,finished\n"
            "because the fault did not fire: memory_pressure of rank 1 at iteration:3: no cgroup\n"
            "fault 0 did not fire\n");
}

TEST(CaseRunnerFaults, AnAgentsFaultByTheClockThatHeals) {
  EXPECT_EQ(
      Conduct(With(faults::FaultKind::kCpuHog, kAtStart, 1),
              coordinator::Steps(coordinator::When("inject 1"),
                                 coordinator::OfFault(1, 0, control::FaultNews::kApplied, "2 hogs"),
                                 coordinator::After(1),
                                 coordinator::OfFault(1, 0, control::FaultNews::kHealed, "2 hogs"),
                                 Healthy())),
      "inject 1 fault 0: kind 0 amount 0 for 1 s\n"
      "pass: finished,finished\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AnAgentsNewsThatCameWhileAllWasGathered) {
  EXPECT_EQ(
      Conduct(With(faults::FaultKind::kCpuHog, kAtStart),
              {coordinator::When("inject 1"),
               coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)}),
               coordinator::After(6), coordinator::Of(coordinator::EventKind::kOverdue, 0),
               coordinator::OfFault(1, 0, control::FaultNews::kApplied, "hogs")}),
      "inject 1 fault 0: kind 0 amount 0 for 0 s\n"
      "fail: hung,hung after 6.301 s\n"
      "rank_busy of 1, suspected\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AFaultOfTheStart) {
  StressScript script = With(faults::FaultKind::kEnvironment, {});
  script.faults[0].variables = {"A=b"};
  script.all_commands = true;
  EXPECT_EQ(
      Conduct(script, coordinator::Steps(coordinator::OfFault(1, 0, control::FaultNews::kApplied),
                                         Healthy())),
      "plugin 0 use 0\n"
      "plugin 0 watch 0\n"
      "plugin 1 use 0\n"
      "plugin 1 watch 0\n"
      "start, rank 1 set up\n"
      "send 1 case: generation 0 as 1 of 2 from 0\n"
      "send 0 case: generation 0 as 0 of 2 from 0\n"
      "inject 1 fault 0: kind 7 amount 0 for 0 s\n"
      "collect\n"
      "end\n"
      "pass: finished,finished\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerFaults, AFaultInsideTheProgramIsItsOwnAffair) {
  EXPECT_EQ(
      Conduct(
          With(faults::FaultKind::kSkipCollective, {faults::FaultMoment::Kind::kCollective, 50, 0}),
          {Fired(1, 0),
           coordinator::Ranks({verdict::At50(0), verdict::After49(1).Enters(verdict::Barrier())}),
           Quiet(0)}),
      "fail: hung,hung after 0.001 s\n"
      "collective_mismatch of 0,1, proved\n"
      "fault 0 fired\n");
}

std::string Apply(const std::string& rank, const links::LinkRule& rule) {
  return "plugin " + rank + " apply " + control::Encode(rule) + "\n";
}

TEST(CaseRunnerFaults, ALinkIsApplied) {
  StressScript script = With(faults::FaultKind::kLinkDelay, kAtIteration, 2);
  script.faults[0].amounts = {{"to", 0}, {"delay", 0.01}};
  EXPECT_EQ(Conduct(script, coordinator::Steps(Fired(1, 0), coordinator::FromPlugin(0, "applied 1"),
                                               coordinator::FromPlugin(1, "applied 1"),
                                               coordinator::FromPlugin(1, "touched 1"),
                                               coordinator::After(3), Healthy())),
            "plugin 0 use 1\n"
            "plugin 0 watch 1\n"
            "plugin 0 addresses\n"
            "plugin 1 use 1\n"
            "plugin 1 watch 1\n"
            "plugin 1 addresses\n" +
                Apply("0", {.id = 1, .peer = 1, .delay_s = 0.01, .seed = 10451216379200822465U}) +
                Apply("1", {.id = 1, .peer = 0, .delay_s = 0.01, .seed = 10451216379200822466U}) +
                "send 1 applied\n"
                "plugin 0 heal 1\n"
                "plugin 1 heal 1\n"
                "pass: finished,finished\n"
                "fault 0 fired\n");
}

TEST(CaseRunnerFaults, ALinkThatNoTrafficMeetsHasNotFired) {
  StressScript script = With(faults::FaultKind::kLinkDown, kAtStart);
  script.faults[0].amounts = {{"to", 0}};
  EXPECT_EQ(Conduct(script, coordinator::Steps(coordinator::When("plugin 1 apply"),
                                               coordinator::FromPlugin(0, "applied 1"),
                                               coordinator::FromPlugin(1, "applied 1"), Healthy())),
            "plugin 0 use 1\n"
            "plugin 0 watch 1\n"
            "plugin 0 addresses\n"
            "plugin 1 use 1\n"
            "plugin 1 watch 1\n"
            "plugin 1 addresses\n" +
                Apply("0", {.id = 1, .peer = 1, .down = true, .seed = 10451216379200822465U}) +
                Apply("1", {.id = 1, .peer = 0, .down = true, .seed = 10451216379200822466U}) +
                "unknown: finished,finished\n"
                "because the fault did not fire: link_down of rank 1 to rank 0 at time:0.3s\n"
                "fault 0 did not fire\n");
}

TEST(CaseRunnerFaults, TheSecondOfTwoFaults) {
  StressScript script = With(faults::FaultKind::kStop, kAtIteration, 1);
  script.faults.push_back({faults::FaultKind::kKill, 0, kAtStart, std::nullopt});
  EXPECT_EQ(Conduct(script,
                    {Fired(1, 0), coordinator::When("signal 0 9"),
                     coordinator::Ranks({verdict::After49(0).Signalled(SIGKILL),
                                         verdict::After49(1).Stopped(SIGSTOP)}),
                     coordinator::Signalled(0, SIGKILL), coordinator::When("signal 1 18"),
                     coordinator::Ranks({verdict::After49(0).Signalled(SIGKILL), verdict::At50(1)}),
                     coordinator::Of(coordinator::EventKind::kContinued, 1), Quiet(1)}),
            "signal 1 19\n"
            "signal 0 9\n"
            "signal 1 18\n"
            "send 1 applied\n"
            "fail: killed,hung after 1.001 s\n"
            "rank_killed of 0, proved\n"
            "fault 0 fired\n"
            "fault 1 fired\n");
}

}  // namespace
}  // namespace lockstep::stress::run
