// What the scheduler of a measurement makes of ranks that die, fail or are lost: whom the judgement
// names, which case it costs, and what is measured after it.
#include <csignal>

#include "bench/harness/testing/schedule.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"

namespace lockstep::bench::harness {
namespace {

using coordinator::After;
using coordinator::EventKind;
using coordinator::Exited;
using coordinator::Of;
using coordinator::Ranks;
using coordinator::Refused;
using coordinator::Signalled;
using coordinator::Steps;
using coordinator::When;

coordinator::Script KilledIn(std::uint32_t case_index) {
  return {When("send * round"),
          Ranks({Measures(case_index, 0), Measures(case_index, 1).Signalled(SIGKILL)}), After(1),
          Signalled(1, SIGKILL)};
}

TEST(BenchLosses, AKillCostsTheCaseAndTheOtherIsMeasuredAnew) {
  EXPECT_EQ(
      Schedule({}, Steps(BothReady(), BothDid({0, 1}, 2), KilledIn(0), BothReady(), BothDid({1}, 2),
                         BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "collect\n"
      "save interrupted 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 2: 1x0+2\n"
      "save lost 2, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 2 iterations 4\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, ALossInTheFirstRound) {
  EXPECT_EQ(
      Schedule({}, Steps(BothReady(), KilledIn(0), BothReady(), BothDid({1}), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect (2 times)\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 1: 1x0+4\n"
      "save lost 0, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 0 iterations 4\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, TwoLifetimesWithoutARoundAreEnough) {
  EXPECT_EQ(
      Schedule({.cases = 3}, Steps(BothReady(), KilledIn(0), BothReady(), KilledIn(1))),
      "start\n"
      "send * plan\n"
      "begun\n"
      "save not_run 0, not_run 0, not_run 0\n"
      "clocks\n"
      "send * round 0: 0x0+4 1x0+4 2x0+4\n"
      "collect (2 times)\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 1: 1x0+4 2x0+4\n"
      "collect (2 times)\n"
      "end\n"
      "fail: hung,killed; rank_killed of 1, proved; rank_killed of 1, proved\n"
      "repetition 0: lost 0 lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n"
      "lifetime 1 of repetition 0 lost case 1: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, AKillInTheLastCaseKeepsTheFirst) {
  EXPECT_EQ(
      Schedule(
          {},
          Steps(BothReady(), BothDid({0, 1}, 2), When("send * round"), Sampled(0, 0, 2),
                Sampled(1, 0, 2), Ranks({Measures(1, 0), Measures(1, 1).Signalled(SIGKILL)}),
                Sampled(0, 1, 1), Signalled(1, SIGKILL), BothReady(), BothDid({0}, 0), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "save interrupted 4, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 2: 0x0+0\n"
      "save iterations 4, lost 2\n"
      "send * finish\n"
      "await exits\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: iterations 4 lost 2\n"
      "lifetime 0 of repetition 0 lost case 1: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, TheWorkersOfMpiAreNotStartedTwice) {
  EXPECT_EQ(
      Schedule({.own_mpi = true}, Steps(BothReady(), KilledIn(0))),
      "send * round 0: 0x0+4 1x0+4\n"
      "collect (2 times)\n"
      "end\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, TwoCasesTwoLosses) {
  EXPECT_EQ(
      Schedule({}, Steps(BothReady(), BothDid({0, 1}, 2), KilledIn(0), BothReady(), KilledIn(1))),
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "collect\n"
      "save interrupted 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 2: 1x0+2\n"
      "collect\n"
      "save lost 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "save lost 2, lost 2\n"
      "fail: hung,killed; rank_killed of 1, proved; rank_killed of 1, proved\n"
      "repetition 0: lost 2 lost 2\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n"
      "lifetime 1 of repetition 0 lost case 1: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, ALostCaseRestsInLaterRepetitions) {
  EXPECT_EQ(
      Schedule({.repetitions = 2}, Steps(BothReady(), BothDid({0, 1}, 2), KilledIn(0), BothReady(),
                                         BothDid({1}, 2), BothDid({1}), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "collect\n"
      "save interrupted 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 2: 1x0+2\n"
      "clocks\n"
      "send * round 3: 1x0+4\n"
      "save lost 0, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 2 iterations 4\n"
      "repetition 1: lost 0 iterations 4\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, WhatPeersSaySoonAfterBelongsToIt) {
  EXPECT_EQ(
      Schedule({}, Steps(BothReady(), BothDid({0, 1}, 2), When("send * round"),
                         Ranks({Measures(0, 0), Measures(0, 1).Signalled(SIGKILL)}),
                         Signalled(1, SIGKILL), After(0.1),
                         Failed(0, SystemFailed("Connection closed by peer")), Sampled(0, 0, 1),
                         Exited(0, 1), BothReady(), BothDid({1}, 2), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "save interrupted 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 2: 1x0+2\n"
      "save lost 2, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: failed,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 2 iterations 4\n"
      "lifetime 0 of repetition 0 lost case 0: fail: failed,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, AnErrorOfOneRank) {
  EXPECT_EQ(
      Schedule({},
               Steps(BothReady(), BothDid({0, 1}, 2), When("send * round"),
                     Ranks({Measures(0, 0), Measures(0, 1)}), Failed(1, SystemFailed("no route")),
                     BothReady(), BothDid({1}, 2), BothLeft())),
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "save interrupted 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "clocks\n"
      "send * round 2: 1x0+2\n"
      "save lost 2, iterations 4\n"
      "send * finish\n"
      "await exits\n"
      "fail: hung,failed; rank_failed of 1, proved\n"
      "repetition 0: lost 2 iterations 4\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,failed; rank_failed of 1, proved\n");
}

// A debugger, a snapshot or job control stops a rank for a moment. That did not end the others.
TEST(BenchLosses, AnErrorIsNotOfTheRankThatIsStoppedForAMoment) {
  EXPECT_EQ(Schedule({.own_mpi = true},
                     Steps(BothReady(), When("send * round"),
                           Ranks({Measures(0, 0), Measures(0, 1).Stopped(SIGSTOP).Silent(0.05)}),
                           Failed(0, SystemFailed("no route")))),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect\n"
            "end\n"
            "fail: failed,hung; rank_failed of 0, proved\n"
            "repetition 0: lost 0 not_run 0\n"
            "lifetime 0 of repetition 0 lost case 0: fail: failed,hung; rank_failed of 0, "
            "proved\n");
}

TEST(BenchLosses, AnErrorOfTheEnvironmentBeforeARoundEndsTheRun) {
  EXPECT_EQ(Schedule({}, Steps(When("send * plan"), Ranks({Connects(0), Connects(1)}),
                               Failed(1, EnvironmentError("no memory")))),
            "start\n"
            "send * plan\n"
            "collect\n"
            "end\n"
            "no memory\n");
}

TEST(BenchLosses, AnErrorOfTheEnvironmentAfterARoundIsData) {
  EXPECT_EQ(
      Schedule({.iterations = {}}, Steps(BothReady(), BothDid({0, 1}), When("send * round"),
                                         Ranks({Measures(0, 0), Measures(0, 1)}),
                                         Failed(1, EnvironmentError("no memory")), When("start"),
                                         Failed(0, EnvironmentError("no memory")))),
      "send * round 0: 0x1+1 1x1+1\n"
      "clocks\n"
      "send * round 1: 0x16+150 1x16+150\n"
      "save interrupted 4, interrupted 4\n"
      "collect\n"
      "end\n"
      "start\n"
      "send * plan\n"
      "save lost 4, interrupted 4\n"
      "collect\n"
      "end\n"
      "save lost 4, interrupted 4\n"
      "fail: hung,failed; rank_failed of 1, proved; rank_failed of 0, proved\n"
      "repetition 0: lost 4 interrupted 4\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,failed; rank_failed of 1, proved\n"
      "lifetime 1 of repetition 0 lost case 0: fail: failed,hung; rank_failed of 0, proved\n");
}

TEST(BenchLosses, WorkersThatCannotBeStarted) {
  EXPECT_EQ(Schedule({}, {Refused(EnvironmentError("no processes left"))}),
            "start\n"
            "collect\nend\nno processes left\n");
}

TEST(BenchLosses, WorkersThatCannotBeStartedAgain) {
  EXPECT_EQ(
      Schedule({}, Steps(BothReady(), BothDid({0, 1}, 2), KilledIn(0),
                         Refused(EnvironmentError("no processes left")))),
      "the cases that are left are not run: no processes left\n"
      "send * round 0: 0x0+4 1x0+4\n"
      "clocks\n"
      "send * round 1: 0x0+2 1x0+2\n"
      "collect\n"
      "save interrupted 2, interrupted 2\n"
      "collect\n"
      "end\n"
      "start\n"
      "end\n"
      "save lost 2, interrupted 2\n"
      "fail: hung,killed; rank_killed of 1, proved\n"
      "repetition 0: lost 2 interrupted 2\n"
      "lifetime 0 of repetition 0 lost case 0: fail: hung,killed; rank_killed of 1, proved\n");
}

TEST(BenchLosses, ADeathBeforeARoundIsNotTriedAgain) {
  EXPECT_EQ(
      Schedule({}, Steps(When("send * plan"), Ranks({Connects(0), Connects(1).Signalled(SIGSEGV)}),
                         Ready(0), Signalled(1, SIGSEGV))),
      "start\n"
      "send * plan\n"
      "collect\n"
      "end\n"
      "fail: hung,crashed; rank_crashed of 1, proved\n"
      "repetition 0: not_run 0 not_run 0\n"
      "lifetime 0 of repetition 0 lost no case: fail: hung,crashed; rank_crashed of 1, proved\n");
}

TEST(BenchLosses, AMismatchIsProvedAtOnce) {
  const verdict::History barrier =
      verdict::History(1).Case(0).In(journal::Phase::kMeasure).Enters(verdict::Barrier());
  EXPECT_EQ(Schedule({.own_mpi = true},
                     Steps(BothReady(), When("send * round"), Ranks({Measures(0, 0), barrier}),
                           Of(EventKind::kQuiet, 0))),
            "send * round 0: 0x0+4 1x0+4\n"
            "collect\n"
            "end\n"
            "fail: hung,hung; collective_mismatch of 0,1, proved\n"
            "repetition 0: lost 0 not_run 0\n"
            "lifetime 0 of repetition 0 lost case 0: fail: hung,hung; collective_mismatch of 0,1, "
            "proved\n");
}

}  // namespace
}  // namespace lockstep::bench::harness
