// What the scheduler of a measurement makes of silence: when it is held against a rank, and which.
#include <csignal>
#include <string>

#include "bench/harness/testing/schedule.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"

namespace lockstep::bench::harness {
namespace {

using coordinator::After;
using coordinator::EventKind;
using coordinator::Late;
using coordinator::Of;
using coordinator::Ranks;
using coordinator::Signalled;
using coordinator::Steps;
using coordinator::Stopped;
using coordinator::When;

coordinator::ScriptStep Overdue(int rank) { return Of(EventKind::kOverdue, rank); }

TEST(BenchSilence, ARankThatNeverConnects) {
  EXPECT_EQ(Schedule({}, Steps(When("send * plan"),
                               Ranks({Connects(0).Idle(), Connects(1).Silent(120)}), Ready(0))),
            "start\n"
            "send * plan\n"
            "collect\n"
            "end\n"
            "fail: finished,hung; init_failure of 1, suspected\n"
            "repetition 0: not_run 0 not_run 0\n"
            "lifetime 0 of repetition 0 lost no case: fail: finished,hung; init_failure of 1, "
            "suspected\n");
}

TEST(BenchSilence, SilenceOfAll) {
  EXPECT_EQ(
      Schedule({.own_mpi = true},
               Steps(BothReady(), When("send * round"),
                     Ranks({Measures(0, 0).Silent(6),
                            Measures(0, 1).In(journal::Phase::kCheck).Silent(6)}),
                     After(6), Overdue(0))),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect (12 times)\n"
      "end\n"
      "fail: hung,hung; transport_stall of , suspected\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,hung; transport_stall of , suspected\n");
}

TEST(BenchSilence, SilenceIsHeldAgainstNobodyWhileARankDoesSomething) {
  EXPECT_EQ(Schedule({}, Steps(BothReady(), When("send * round"),
                               Ranks({Measures(0, 0).Silent(6), Measures(0, 1).Silent(1)}),
                               After(1), Overdue(0), After(1), Did({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect (2 times)\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n");
}

// Between a glance and the look that reads stacks, or between two answers to that look.
TEST(BenchSilence, ARankGoesOnWhileAllAreTakenForSilent) {
  const auto looks = [](double seconds) {
    return Ranks({Measures(0, 0).Silent(6), Measures(0, 1).Silent(seconds)});
  };
  const std::string passes =
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: iterations 4 iterations 4\n";
  EXPECT_EQ(Schedule({}, Steps(BothReady(), When("send * round"), After(0.1), looks(6), looks(0.1),
                               Overdue(0), After(0.1), Did({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect\n" +
                passes);
  EXPECT_EQ(Schedule({}, Steps(BothReady(), When("send * round"), After(0.1), looks(6), looks(6),
                               looks(0.1), Overdue(0), Did({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect\n" +
                passes);
}

TEST(BenchSilence, SilenceCountsWhileAgentsAreAwake) {
  EXPECT_EQ(
      Schedule({.own_mpi = true}, Steps(BothReady(), When("send * round"),
                                        Ranks({Measures(0, 0).Silent(6), Measures(0, 1).Silent(6)}),
                                        After(2), Late(), Overdue(0), Overdue(1))),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect (13 times)\n"
      "end\n"
      "fail: hung,hung; transport_stall of , suspected\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,hung; transport_stall of , "
      "suspected\n");
}

TEST(BenchSilence, AStopIsHeldAgainstItsRankWhenAllAreSilent) {
  const verdict::History stopped =
      verdict::History(1).Case(0).In(journal::Phase::kMeasure).Stopped(SIGSTOP).Silent(6);
  EXPECT_EQ(
      Schedule({.own_mpi = true},
               Steps(BothReady(), When("send * round"), Ranks({Measures(0, 0).Silent(6), stopped}),
                     Stopped(1, SIGSTOP), Of(EventKind::kQuiet, 0), After(6), Overdue(0))),
      "rank 1 (host node0) was stopped by signal 19: all others wait for it; continue it (kill "
      "-CONT), or its case fails after 5 s of silence (-T)\n"
      "send * round 0: 0x0+4 1x0+4\n"
      "collect (12 times)\n"
      "end\n"
      "fail: hung,stopped; rank_stopped of 1, proved\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,stopped; rank_stopped of 1, proved\n");
}

TEST(BenchSilence, AStopBetweenRoundsCountsFromItsBegin) {
  const verdict::History stopped = verdict::History(1).Case(0).Idle().Stopped(SIGSTOP);
  EXPECT_EQ(Schedule({}, Steps(BothReady(), When("send * round"),
                               Ranks({Measures(0, 0).Silent(0.3), stopped}), After(4.8), Overdue(0),
                               Ranks({Measures(0, 0), Measures(0, 1)}), Did({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect (9 times)\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchSilence, AStopBetweenRoundsThatLastsIsHeldAgainstItsRank) {
  const verdict::History stopped = verdict::History(1).Case(0).Idle().Stopped(SIGSTOP);
  EXPECT_EQ(Schedule({.own_mpi = true},
                     Steps(BothReady(), When("send * round"),
                           Ranks({Measures(0, 0).Silent(0.3), stopped}), After(5.2), Overdue(0))),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect (11 times)\n"
            "end\n"
            "fail: hung,stopped; rank_stopped of 1, proved\n"
            "repetition 0: lost 0 not_run 0\n"
            "lifetime 0 of repetition 0 lost case 0: fail: hung,stopped; rank_stopped of 1, "
            "proved\n");
}

TEST(BenchSilence, ASleeperThatDoesNotGoOnIsNoStall) {
  const verdict::History asleep = Measures(0, 1).Silent(6).Asleep("asleep in nanosleep");
  EXPECT_EQ(
      Schedule({.own_mpi = true},
               Steps(BothReady(), When("send * round"), Ranks({Measures(0, 0).Silent(6), asleep}),
                     After(6), Overdue(0))),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect (12 times)\n"
      "end\n"
      "fail: hung,hung; transport_stall of 1, suspected\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,hung; transport_stall of 1, suspected\n");
}

TEST(BenchSilence, ASleeperThatWentOnBeforeTheLossIsAStall) {
  const verdict::History went = verdict::History(1)
                                    .Case(0)
                                    .In(journal::Phase::kMeasure)
                                    .Does(verdict::AllReduce())
                                    .Enters(verdict::AllReduce());
  EXPECT_EQ(Schedule({.own_mpi = true},
                     Steps(BothReady(), When("send * round"),
                           Ranks({Measures(0, 0), Measures(0, 1).Silent(0.6).Asleep("asleep")}),
                           After(0.7), Ranks({Measures(0, 0).Signalled(SIGKILL), went}),
                           Signalled(0, SIGKILL))),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect (2 times)\n"
            "end\n"
            "fail: killed,hung; rank_killed of 0, proved; slow_rank of 1, proved\n"
            "repetition 0: lost 0 not_run 0\n"
            "lifetime 0 of repetition 0 lost case 0: fail: killed,hung; rank_killed of 0, proved\n"
            "rank 1 stalled in case 0\n");
}

}  // namespace
}  // namespace lockstep::bench::harness
