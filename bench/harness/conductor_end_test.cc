// How a measurement ends: by a signal, with its launch, or because all is measured and the workers
// leave, or do not.
#include <csignal>

#include "bench/harness/testing/conduct.h"
#include "core/verdict/history.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

FleetStep Terminate() { return Of(FleetEventKind::kTerminate); }
FleetStep Warned() { return Of(FleetEventKind::kWarned); }
History In(std::uint32_t case_index, int rank) {
  return History(rank).Case(case_index).In(Phase::kMeasure).Enters(AllReduce());
}
History Ends(int rank) { return History(rank).Case(0).In(Phase::kMeasure).In(Phase::kFinalize); }

TEST(BenchEnd, ToldToEndWhileItMeasures) {
  EXPECT_EQ(Conduct({}, Steps(BothReady(), When("send * round"), Ranks({In(0, 0), In(0, 1)}),
                              Sampled(0, 0, 4), Sampled(1, 0, 2), After(0.1), Terminate())),
            "send * round 0: 0x0+4 1x0+4\n"
            "save interrupted 2, not_run 0 (2 times)\n"
            "end\n"
            "unknown: finished,finished\n"
            "repetition 0: interrupted 2 not_run 0\n"
            "told to end\n");
}

TEST(BenchEnd, ToldToEndBeforeAnythingIsMeasured) {
  EXPECT_EQ(Conduct({}, Steps(When("send * plan"), Ready(0), Terminate())),
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
  EXPECT_EQ(Conduct({.repetitions = 3}, Steps(BothReady(), BothDid({0, 1}), When("send * round"),
                                              Sampled(0, 0, 1), Terminate())),
            "send * round 0: 0x0+4 1x0+4\n"
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
  EXPECT_EQ(Conduct({}, Steps(BothReady(), When("send * round"), Warned(), After(1.2),
                              Sampled(0, 0, 4), Sampled(1, 0, 4), After(5), Sampled(0, 1, 4),
                              Sampled(1, 1, 4), RoundDone(0), RoundDone(1), BothLeft())),
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
      Conduct({}, Steps(BothReady(), BothDid({0, 1}), When("send * finish"),
                        Ranks({Ends(0).Leaves(0), Ends(1).Silent(20)}), Exited(0, 0))),
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

TEST(BenchEnd, AWorkerThatDiesWhenItLeaves) {
  EXPECT_EQ(
      Conduct({}, Steps(BothReady(), BothDid({0, 1}), When("send * finish"),
                        Ranks({Ends(0).Leaves(0), Ends(1).Signalled(SIGSEGV)}), Exited(0, 0),
                        Signalled(1, SIGSEGV))),
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
      Conduct({.hosts = {"a", "b"}},
              Steps(BothReady(), When("send * round"), Ranks({In(0, 0), In(0, 1).Lost()}),
                    Terminate(), After(0.1), Lost(1, Loss::kCutOff))),
      "send * round 0: 0x0+4 1x0+4\n"
      "save not_run 0, not_run 0\n"
      "end\n"
      "fail: finished,hung; host_cut_off of 1, suspected\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: finished,hung; host_cut_off of 1, suspected\n"
      "told to end\n");
}

TEST(BenchEnd, WorkersThatDieOfTheSignalThatEndsAllAreNotAccused) {
  EXPECT_EQ(Conduct({}, Steps(BothReady(), When("send * round"),
                              Ranks({In(0, 0), In(0, 1).Signalled(SIGTERM)}), Signalled(1, SIGTERM),
                              After(0.1), Terminate())),
            "send * round 0: 0x0+4 1x0+4\n"
            "end\n"
            "unknown: finished,finished\n"
            "repetition 0: not_run 0 not_run 0\n"
            "told to end\n");
}

TEST(BenchEnd, ACrashBeforeTheSignalToEndIsToldAllTheSame) {
  EXPECT_EQ(
      Conduct({}, Steps(BothReady(), When("send * round"),
                        Ranks({In(0, 0), In(0, 1).Signalled(SIGSEGV)}), Signalled(1, SIGSEGV),
                        After(0.1), Terminate())),
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
      Conduct({}, Steps(BothReady(), BothDid({0, 1}), When("send * finish"),
                        Ranks({History(0).Case(1).In(Phase::kMeasure).Idle(),
                               History(1).Case(1).In(Phase::kCheck).Signalled(SIGKILL)}),
                        Signalled(1, SIGKILL))),
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
  const History idle = History(0).Case(1).In(Phase::kMeasure).Idle();
  EXPECT_EQ(Conduct({.iterations = {}},
                    Steps(BothReady(), BothDid({0, 1}), When("send * round"),
                          Ranks({idle, History(1).Case(1).In(Phase::kMeasure).Idle().Exited(0)}),
                          Exited(1, 0), Terminate())),
            "send * round 0: 0x1+1 1x1+1\n"
            "clocks\n"
            "send * round 1: 0x4+64 1x4+64\n"
            "save interrupted 4, interrupted 4\n"
            "end\n"
            "save interrupted 4, interrupted 4\n"
            "unknown: finished,finished\n"
            "repetition 0: interrupted 4 interrupted 4\n"
            "told to end\n");
}

}  // namespace
}  // namespace lockstep
