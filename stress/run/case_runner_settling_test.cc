// What peers of a rank that is gone are given to fail by themselves, once it is proved.
#include <csignal>

#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "stress/run/testing/conduct.h"

namespace lockstep::stress::run {
namespace {

verdict::History Fails50(int rank) { return verdict::After49(rank).FailsIn(verdict::AllReduce()); }

TEST(CaseRunnerSettling, AKilledRankIsProvedAndItsPeerMayStillFail) {
  EXPECT_EQ(
      Conduct({},
              {coordinator::Ranks({verdict::At50(0), verdict::At50(1).Signalled(SIGKILL)}),
               coordinator::After(2), coordinator::Signalled(1, SIGKILL), coordinator::After(0.2),
               coordinator::Ranks({Fails50(0).Leaves(1), verdict::At50(1).Signalled(SIGKILL)}),
               Raised(0, kClosed), coordinator::Exited(0, 1)}),
      "fail: failed,killed after 2.001 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerSettling, APeerHearsOfARankThatIsOverWhenItLeaves) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1)}), Quiet(0),
                         Finished(1), coordinator::After(3), coordinator::Exited(1, 0),
                         coordinator::After(0.9),
                         coordinator::Ranks({Fails50(0).Leaves(1), verdict::After49(1).Leaves(0)}),
                         Raised(0, kClosed), coordinator::Exited(0, 1)}),
            "fail: failed,finished after 0.001 s\n"
            "rank_exited of 1, proved\n");
}

// Until -T, at most.
TEST(CaseRunnerSettling, ARankThatIsOverAndDoesNotLeave) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1)}), Quiet(0),
                         Finished(1), coordinator::After(4.9), Quiet(0)}),
            "fail: hung,finished after 0.001 s\n"
            "rank_exited of 1, proved\n");
}

// What is proved stays known when the case has no time left.
TEST(CaseRunnerSettling, ARankThatIsOverAndDoesNotLeaveUntilTheLimit) {
  EXPECT_EQ(
      Conduct({.limit_seconds = 3}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1)}),
                                     Quiet(0), Finished(1), coordinator::After(2.9), Quiet(0)}),
      "fail: hung,finished after 0.001 s\n"
      "rank_exited of 1, proved\n");
}

// What a rank waited for a processor before the proof is no part of the moment behind it.
TEST(CaseRunnerSettling, APeerThatGotItsProcessorLateBefore) {
  const verdict::RankEvidence killed = verdict::At50(1).Signalled(SIGKILL);
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0).Starved(3), killed}),
                         coordinator::Signalled(1, SIGKILL), coordinator::After(2),
                         coordinator::Ranks({Fails50(0).Leaves(1), killed}), Raised(0, kClosed),
                         coordinator::Exited(0, 1)}),
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n"
            "4 steps were not taken\n");
}

// Also where another rank leaves meanwhile, or waited longer.
TEST(CaseRunnerSettling, APeerOfTwoGetsAProcessorLate) {
  const verdict::RankEvidence killed = verdict::At50(2).Signalled(SIGKILL);
  EXPECT_EQ(
      Conduct(
          {.ranks = 3},
          {coordinator::Ranks({verdict::At50(0), verdict::At50(1).Starved(5), killed}),
           coordinator::Signalled(2, SIGKILL), coordinator::After(0.5),
           coordinator::Ranks({verdict::At50(0).Starved(3), verdict::At50(1).Starved(5), killed}),
           Quiet(0), coordinator::After(0.6),
           coordinator::Ranks({verdict::At50(0).Starved(3), Fails50(1).Leaves(1), killed}),
           Raised(1, kClosed), coordinator::Exited(1, 1), coordinator::After(2.4),
           coordinator::Ranks({Fails50(0).Leaves(1), Fails50(1).Leaves(1), killed}),
           Raised(0, kClosed), coordinator::Exited(0, 1)}),
      "fail: failed,failed,killed after 0.001 s\n"
      "rank_killed of 2, proved\n");
}

TEST(CaseRunnerSettling, APeerOfAKilledRankGetsAProcessorLate) {
  const verdict::RankEvidence killed = verdict::At50(1).Signalled(SIGKILL);
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0), killed}),
                         coordinator::Signalled(1, SIGKILL), coordinator::After(0.5),
                         coordinator::Ranks({verdict::At50(0).Starved(2), killed}), Quiet(0),
                         coordinator::After(2), coordinator::Ranks({Fails50(0).Leaves(1), killed}),
                         Raised(0, kClosed), coordinator::Exited(0, 1)}),
            "fail: failed,killed after 0.001 s\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerSettling, AKilledRankWhosePeerHearsNothing) {
  const auto steps = [] {
    return coordinator::Script{
        coordinator::Ranks({verdict::At50(0), verdict::At50(1).Signalled(SIGKILL)}),
        coordinator::Signalled(1, SIGKILL)};
  };
  EXPECT_EQ(Conduct({}, steps()),
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n");
  EXPECT_EQ(Conduct({.backend = "mpi"}, steps()),
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n");
}

}  // namespace
}  // namespace lockstep::stress::run
