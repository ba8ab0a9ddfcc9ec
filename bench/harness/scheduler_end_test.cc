// How a measurement ends: by a signal, with its launch, or because all is measured and the workers
// leave, or do not.
#include <csignal>

#include "bench/harness/testing/schedule.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"

namespace lockstep::bench::harness {
namespace {

coordinator::ScriptStep Terminate() { return coordinator::Of(coordinator::EventKind::kTerminate); }
coordinator::ScriptStep Warned() { return coordinator::Of(coordinator::EventKind::kWarned); }
verdict::History Ends(int rank) {
  return verdict::History(rank).Case(0).In(journal::Phase::kMeasure).In(journal::Phase::kFinalize);
}

TEST(BenchEnd, ToldToEndWhileItMeasures) {
  EXPECT_EQ(Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                            coordinator::Ranks({Measures(0, 0), Measures(0, 1)}),
                                            Sampled(0, 0, 4), Sampled(1, 0, 2),
                                            coordinator::After(0.1), Terminate())),
            "send * round 0: 0x0+4 1x0+4\n"
            "save interrupted 2, not_run 0 (2 times)\n"
            "end\n"
            "unknown: finished,finished\n"
            "repetition 0: interrupted 2 not_run 0\n"
            "told to end\n");
}

TEST(BenchEnd, ToldToEndBeforeAnythingIsMeasured) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(coordinator::When("send * plan"), Ready(0), Terminate())),
      "start\n"
      "send * plan\n"
      "begun\n"
      "save not_run 0, not_run 0\n"
      "end\n"
      "unknown: finished,finished\n"
      "repetition 0: not_run 0 not_run 0\n"
      "told to end\n");
}

TEST(BenchEnd, ToldToEndInTheSecondRepetition) {
  EXPECT_EQ(
      Schedule({.repetitions = 3, .replicated = true},
               coordinator::Steps(BothReady(), BothDid({0, 1}), coordinator::When("send * round"),
                                  Sampled(0, 0, 1), Terminate())),
      "send * round 0: 0x0+4 1x0+4\n"
      "replicate 1 rounds with 0 wrong; 0 losses\n"
      "clocks\n"
      "send * round 1: 0x0+4 1x0+4\n"
      "save not_run 0, not_run 0 (2 times)\n"
      "end\n"
      "unknown: finished,finished\n"
      "repetition 0: iterations 4 iterations 4\n"
      "repetition 1: not_run 0 not_run 0\n"
      "told to end\n");
}

TEST(BenchEnd, WarnedItSavesUntilTheWarningIsOld) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"), Warned(),
                                      coordinator::After(1.2), Sampled(0, 0, 4), Sampled(1, 0, 4),
                                      coordinator::After(5), Sampled(0, 1, 4), Sampled(1, 1, 4),
                                      RoundDone(0), RoundDone(1), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "save not_run 0, not_run 0\n"
      "collect (2 times)\n"
      "save interrupted 4, not_run 0\n"
      "collect\n"
      "save interrupted 4, not_run 0\n"
      "collect\n"
      "save interrupted 4, not_run 0\n"
      "collect (7 times)\n"
      "save iterations 4, iterations 4 (2 times)\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchEnd, AWorkerThatDoesNotLeave) {
  EXPECT_EQ(
      Schedule({},
               coordinator::Steps(BothReady(), BothDid({0, 1}), coordinator::When("send * finish"),
                                  coordinator::Ranks({Ends(0).Leaves(0), Ends(1).Silent(20)}),
                                  coordinator::Exited(0, 0))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "save iterations 4, iterations 4\n"
      "collect\n"
      "end\n"
      "fail: finished,hung; rank_busy of 1, suspected\n"
      "repetition 0: iterations 4 iterations 4\n"
      "lifetime 0 of repetition 0 lost no case: fail: finished,hung; rank_busy of 1, suspected\n"
      "4 journals, facts {of 0}\n");
}

// A hang is told from that by the deadline, which may be longer than what it usually takes.
TEST(BenchEnd, AWorkerThatLeavesLate) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(BothReady(), BothDid({0, 1}),
                                      coordinator::When("send * finish"), coordinator::Exited(0, 0),
                                      coordinator::After(24), coordinator::Exited(1, 0))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchEnd, AWorkerThatDiesWhenItLeaves) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(
                       BothReady(), BothDid({0, 1}), coordinator::When("send * finish"),
                       coordinator::Ranks({Ends(0).Leaves(0), Ends(1).Signalled(SIGSEGV)}),
                       coordinator::Exited(0, 0), coordinator::Signalled(1, SIGSEGV))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "save iterations 4, iterations 4\n"
      "collect\n"
      "end\n"
      "fail: finished,crashed; rank_crashed of 1, proved\n"
      "repetition 0: iterations 4 iterations 4\n"
      "lifetime 0 of repetition 0 lost no case: fail: finished,crashed; rank_crashed of 1, proved\n"
      "4 journals, facts {of 0}\n");
}

TEST(BenchEnd, ToldToEndBecauseAHostIsLost) {
  EXPECT_EQ(
      Schedule({.hosts = {"a", "b"}},
               coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                  coordinator::Ranks({Measures(0, 0), Measures(0, 1).Lost()}),
                                  Terminate(), coordinator::After(0.1),
                                  coordinator::Lost(1, verdict::Loss::kCutOff))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save not_run 0, not_run 0\n"
      "end\n"
      "fail: finished,hung; host_cut_off of 1, suspected\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: finished,hung; host_cut_off of 1, suspected\n"
      "told to end\n");
}

TEST(BenchEnd, WorkersThatDieOfTheSignalThatEndsAllAreNotAccused) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(
                       BothReady(), coordinator::When("send * round"),
                       coordinator::Ranks({Measures(0, 0), Measures(0, 1).Signalled(SIGTERM)}),
                       coordinator::Signalled(1, SIGTERM), coordinator::After(0.1), Terminate())),
      "send * round 0: 0x0+4 1x0+4\n"
      "end\n"
      "unknown: finished,finished\n"
      "repetition 0: not_run 0 not_run 0\n"
      "told to end\n");
}

TEST(BenchEnd, ACrashBeforeTheSignalToEndIsToldAllTheSame) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(
                       BothReady(), coordinator::When("send * round"),
                       coordinator::Ranks({Measures(0, 0), Measures(0, 1).Signalled(SIGSEGV)}),
                       coordinator::Signalled(1, SIGSEGV), coordinator::After(0.1), Terminate())),
      "send * round 0: 0x0+4 1x0+4\n"
      "end\n"
      "fail: hung,crashed; rank_crashed of 1, proved\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,crashed; rank_crashed of 1, proved\n"
      "told to end\n");
}

// It had said that the round is done, and not yet waited for the next order.
TEST(BenchEnd, ADeathAfterTheLastRound) {
  EXPECT_EQ(
      Schedule({},
               coordinator::Steps(
                   BothReady(), BothDid({0, 1}), coordinator::When("send * finish"),
                   coordinator::Ranks(
                       {verdict::History(0).Case(1).In(journal::Phase::kMeasure).Idle(),
                        verdict::History(1).Case(1).In(journal::Phase::kCheck).Signalled(SIGKILL)}),
                   coordinator::Signalled(1, SIGKILL))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "save iterations 4, iterations 4\n"
      "collect\n"
      "end\n"
      "fail: finished,killed; rank_killed of 1, proved\n"
      "repetition 0: iterations 4 iterations 4\n"
      "lifetime 0 of repetition 0 lost case 1: fail: finished,killed; rank_killed of 1, proved\n"
      "4 journals, facts {of 0}\n");
}

TEST(BenchEnd, AnExitWithZeroBetweenRounds) {
  const verdict::History idle = verdict::History(0).Case(1).In(journal::Phase::kMeasure).Idle();
  EXPECT_EQ(
      Schedule({.iterations = {}},
               coordinator::Steps(
                   BothReady(), BothDid({0, 1}), coordinator::When("send * round"),
                   coordinator::Ranks(
                       {idle,
                        verdict::History(1).Case(1).In(journal::Phase::kMeasure).Idle().Exited(0)}),
                   coordinator::Exited(1, 0), Terminate())),
      "send * round 0: 0x1+1 1x1+1\n"
      "clocks\n"
      "send * round 1: 0x16+150 1x16+150\n"
      "save interrupted 4, interrupted 4\n"
      "end\n"
      "save interrupted 4, interrupted 4\n"
      "unknown: finished,finished\n"
      "repetition 0: interrupted 4 interrupted 4\n"
      "told to end\n");
}

TEST(BenchEnd, NewsOfFaultsAndPluginsThatNobodyOrdered) {
  EXPECT_EQ(Schedule({.own_mpi = true},
                     coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                        coordinator::Ranks({Measures(0, 0), Measures(0, 1)}),
                                        coordinator::OfFault(1, 0, control::FaultNews::kApplied))),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect\n"
            "end\n"
            "unknown: finished,finished\n"
            "repetition 0: lost 0 not_run 0\n"
            "lifetime 0 of repetition 0 lost case 0: unknown: finished,finished\n");
}

TEST(BenchEnd, SamplesThatWereOnTheirWayAreKept) {
  EXPECT_EQ(
      Schedule({.own_mpi = true},
               coordinator::Steps(
                   BothReady(), coordinator::When("send * round"),
                   coordinator::Ranks({Measures(1, 0), Measures(1, 1).Signalled(SIGKILL)}),
                   coordinator::Signalled(1, SIGKILL), coordinator::When("end"), Sampled(0, 0, 4),
                   Sampled(1, 0, 4))),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect\n"
      "end\n"
      "save interrupted 4, lost 0\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: interrupted 4 lost 0\n"
      "lifetime 0 of repetition 0 lost case 1: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchEnd, AHostIsLost) {
  EXPECT_EQ(
      Schedule({.hosts = {"a", "b"}},
               coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                  coordinator::Ranks({Measures(0, 0), Measures(0, 1).Lost()}),
                                  Sampled(0, 0, 4), coordinator::Lost(1, verdict::Loss::kClosed))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save not_run 0, not_run 0\n"
      "collect\n"
      "end\n"
      "save lost 0, not_run 0\n"
      "fail: finished,killed; host_lost of 1, proved\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: finished,killed; host_lost of 1, proved\n"
      "told to end\n");
}

// Its host is the others', so that nothing but its agent is known to be silent.
TEST(BenchEnd, AnAgentThatIsSilentWhenWorkersStartIsNoErrorOfAnotherRank) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(coordinator::Refused(EnvironmentError("rank 1 is silent")),
                                      coordinator::Ranks({Connects(0), Connects(1).Lost()}),
                                      coordinator::Lost(1, verdict::Loss::kDeaf))),
      "start\n"
      "collect\n"
      "end\n"
      "unknown: finished,hung; unknown of 1, suspected\n"
      "repetition 0: not_run 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost no case: unknown: finished,hung; unknown of 1, "
      "suspected\n"
      "told to end\n");
}

}  // namespace
}  // namespace lockstep::bench::harness
