// What the scheduler of a measurement makes of ranks that measure: rounds, and what is saved.
// Two cases, of which each rank takes four samples, unless the list says otherwise. What befalls
// ranks is in scheduler_losses_test.cc, how it ends in scheduler_end_test.cc.
#include <fmt/core.h>

#include <csignal>

#include "bench/harness/testing/schedule.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"

namespace lockstep::bench::harness {
namespace {

verdict::History Measures(int rank) {
  return verdict::History(rank).Case(0).In(journal::Phase::kMeasure).Enters(verdict::AllReduce());
}
verdict::History Waits(int rank) {
  return verdict::History(rank).Case(0).In(journal::Phase::kMeasure).Idle();
}

TEST(BenchScheduler, AFixedNumberOfIterations) {
  EXPECT_EQ(Schedule({.all_commands = true},
                     coordinator::Steps(BothReady(), BothDid({0, 1}), BothLeft())),
            "start\n"
            "send * plan\n"
            "begun\n"
            "save not_run 0, not_run 0\n"
            "clocks\n"
            "send * round 0: 0x0+4 1x0+4\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n"
            "2 journals, facts {of 0}\n");
}

TEST(BenchScheduler, RoundsUntilTheyArePrecise) {
  constexpr int kRounds = 17;
  coordinator::Script steps = BothReady();
  std::string rounds = "send * round 0: 0x1+1 1x1+1\n";
  for (int round = 0; round < kRounds; ++round) {
    coordinator::Append(steps, BothDid({0, 1}, 2));
    if (round > 0) rounds += fmt::format("clocks\nsend * round {}: 0x16+150 1x16+150\n", round);
  }
  EXPECT_EQ(Schedule({.iterations = {}}, coordinator::Steps(steps, BothLeft())),
            rounds +
                "save precision 34, precision 34\n"
                "send * finish\n"
                "await exits\n"
                "pass: finished,finished\n"
                "repetition 0: precision 34 precision 34\n");
}

TEST(BenchScheduler, TheTimeBudgetIsOver) {
  EXPECT_EQ(
      Schedule({.iterations = {}, .time_budget_seconds = 2},
               coordinator::Steps(BothReady(), BothDid({0, 1}), coordinator::When("send"),
                                  coordinator::After(1), Did({0, 1}), coordinator::When("send"),
                                  coordinator::After(2), Did({0, 1}), BothLeft())),
      "send * round 0: 0x1+1 1x1+1\n"
      "clocks\n"
      "send * round 1: 0x16+150 1x16+150\n"
      "collect\n"
      "clocks\n"
      "send * round 2: 0x16+150 1x16+150\n"
      "collect (3 times)\n"
      "save time_budget 12, time_budget 12\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: time_budget 12 time_budget 12\n");
}

TEST(BenchScheduler, RoundsAreSavedWhileTheyLast) {
  EXPECT_EQ(
      Schedule({.iterations = {}, .time_budget_seconds = 60},
               coordinator::Steps(BothReady(), coordinator::When("send"), coordinator::After(6),
                                  Did({0, 1}), coordinator::When("send"), coordinator::After(1),
                                  Did({0, 1}), coordinator::When("send"), coordinator::After(70),
                                  Did({0, 1}), BothLeft())),
      "send * round 0: 0x1+1 1x1+1\n"
      "collect (11 times)\n"
      "save interrupted 4, interrupted 4\n"
      "clocks\n"
      "send * round 1: 0x16+150 1x16+150\n"
      "collect\n"
      "clocks\n"
      "send * round 2: 0x16+150 1x16+150\n"
      "collect (139 times)\n"
      "save interrupted 12, interrupted 12\n"
      "save time_budget 12, time_budget 12\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: time_budget 12 time_budget 12\n");
}

TEST(BenchScheduler, ADoneOfOneRankIsNoRound) {
  EXPECT_EQ(Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                            Sampled(0, 0, 4), Sampled(0, 1, 4), RoundDone(0),
                                            coordinator::After(1.2), Sampled(1, 0, 4),
                                            Sampled(1, 1, 4), RoundDone(1), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect (2 times)\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, MessagesThatAreNotExpectedAreNone) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(
                       coordinator::When("send * plan"), RoundDone(0), Ready(1), RoundDone(1),
                       Ready(0), coordinator::When("send * round"), Ready(0), Ready(1),
                       coordinator::Said(0, 77), Sampled(0, 0, 4), Sampled(0, 1, 4), RoundDone(0),
                       Sampled(1, 0, 4), Sampled(1, 1, 4), RoundDone(1), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, WrongDataIsLocated) {
  std::string bytes;
  AppendTo(bytes, measure::WrongRecord{.case_index = 0, .element = 1, .expected = "3", .got = "4"});
  EXPECT_EQ(Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                            Sampled(0, 0, 4), coordinator::Wrote(1, bytes),
                                            Sampled(1, 0, 4, 3), Did({1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "fail: finished,corrupt; data_corruption of 1, proved\n"
            "repetition 0: iterations 4 with 3 wrong iterations 4\n");
}

// Workers tell where of some elements only.
TEST(BenchScheduler, WrongDataIsWrongWhereverItIs) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                      Sampled(0, 0, 4), Sampled(1, 0, 4, 3), Sampled(0, 1, 4),
                                      Sampled(1, 1, 4), RoundDone(0), RoundDone(1), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: finished,finished; data_corruption of , proved\n"
      "repetition 0: iterations 4 with 3 wrong iterations 4\n");
}

TEST(BenchScheduler, TwoRepetitions) {
  EXPECT_EQ(Schedule({.repetitions = 2},
                     coordinator::Steps(BothReady(), BothDid({0, 1}), BothDid({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "clocks\n"
            "send * round 1: 0x0+4 1x0+4\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n"
            "repetition 1: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, ASuccessorKnowsWhereRepetitionsEnd) {
  EXPECT_EQ(
      Schedule({.repetitions = 2, .replicated = true},
               coordinator::Steps(BothReady(), coordinator::When("send * round"), Sampled(0, 0, 4),
                                  Sampled(1, 0, 4, 3), Sampled(0, 1, 4), Sampled(1, 1, 4),
                                  RoundDone(0), RoundDone(1), BothDid({0, 1}), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "replicate 1 rounds with 3 wrong; 0 losses\n"
      "clocks\n"
      "send * round 1: 0x0+4 1x0+4\n"
      "replicate 2 rounds with 0 wrong; 0 losses\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: finished,finished; data_corruption of , proved\n"
      "repetition 0: iterations 4 with 3 wrong iterations 4\n"
      "repetition 1: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, ASecondPassIsAskedForOncePerRepetition) {
  EXPECT_EQ(Schedule({.repetitions = 2, .second_pass = true},
                     coordinator::Steps(BothReady(), BothDid({0, 1}), BothDid({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "second pass of repetition 0\n"
            "clocks\n"
            "send * round 1: 0x0+4 1x0+4\n"
            "second pass of repetition 1\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n"
            "repetition 1: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, NoSecondPassAfterALoss) {
  EXPECT_EQ(
      Schedule({.own_mpi = true, .second_pass = true},
               coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                  coordinator::Ranks({Measures(0), Measures(1).Signalled(SIGKILL)}),
                                  coordinator::Signalled(1, SIGKILL))),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect\n"
      "end\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchScheduler, AStopThatEndsIsTold) {
  EXPECT_EQ(Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                            coordinator::Stopped(1, SIGSTOP), coordinator::After(2),
                                            coordinator::Of(coordinator::EventKind::kContinued, 1),
                                            Did({0, 1}), BothLeft())),
            "rank 1 (host node0) was stopped by signal 19: all others wait for it; continue it "
            "(kill -CONT), or its case fails after 5 s of silence (-T)\n"
            "rank 1 (host node0) was continued; the run goes on\n"
            "send * round 0: 0x0+4 1x0+4\n"
            "collect (3 times)\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, ARankThatSleepsAndGoesOnWasAStall) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(
                       BothReady(), coordinator::When("send * round"),
                       coordinator::Ranks({Measures(0), Measures(1).Silent(0.6).Asleep("asleep")}),
                       coordinator::After(0.7), Did({0, 1}), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished; slow_rank of 1, proved\n"
      "repetition 0: iterations 4 iterations 4\n"
      "rank 1 stalled in case 0\n");
}

TEST(BenchScheduler, ARankThatSleepsBeforeTheRoundIsNone) {
  EXPECT_EQ(
      Schedule({}, coordinator::Steps(
                       coordinator::Ranks({Measures(0), Measures(1).Silent(0.6).Asleep("asleep")}),
                       coordinator::When("send * plan"), coordinator::After(0.7), Ready(0),
                       Ready(1), BothDid({0, 1}), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "save iterations 4, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "pass: finished,finished\n"
      "repetition 0: iterations 4 iterations 4\n");
}

TEST(BenchScheduler, QuietRanksMayMove) {
  EXPECT_EQ(Schedule({}, coordinator::Steps(BothReady(), coordinator::When("send * round"),
                                            coordinator::Ranks({Measures(0), Waits(1)}),
                                            coordinator::Of(coordinator::EventKind::kQuiet, 0),
                                            Did({0, 1}), BothLeft())),
            "send * round 0: 0x0+4 1x0+4\n"
            "save iterations 4, iterations 4\n"
            "send * finish\n"
            "await exits\n"
            "pass: finished,finished\n"
            "repetition 0: iterations 4 iterations 4\n");
}

}  // namespace
}  // namespace lockstep::bench::harness
