// Ranks that are stopped, as the case runner sees them: for a moment, or for good.
#include <csignal>

#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "stress/run/testing/conduct.h"

namespace lockstep::stress::run {
namespace {

coordinator::ScriptStep IsOverdue(int rank) {
  return coordinator::Of(coordinator::EventKind::kOverdue, rank);
}

// Nothing tells whether who stopped it will continue it: a debugger, a snapshot, a suspended job.
TEST(CaseRunnerStop, AStopOfUnknownEndIsAMatterOfSilence) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)}),
                   coordinator::Stopped(1, SIGSTOP), Quiet(0), coordinator::After(6),
                   coordinator::Ranks({verdict::At50(0).Silent(6),
                                       verdict::After49(1).Stopped(SIGSTOP).Silent(6)}),
                   IsOverdue(0)}),
      "fail: hung,stopped after 6.001 s\n"
      "rank_stopped of 1, proved\n");
}

TEST(CaseRunnerStop, AStopForAMomentWhileOthersWaitIsNothing) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)}),
                   coordinator::Stopped(1, SIGSTOP), Quiet(0), coordinator::After(0.05),
                   coordinator::Of(coordinator::EventKind::kContinued, 1), BothDone(), Finished(0),
                   Finished(1), coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

// Rank 0 is silent for the deadline; rank 1 did something, and was stopped a moment ago.
TEST(CaseRunnerStop, AStopForAMomentWhenAnotherIsOverdue) {
  EXPECT_EQ(
      Conduct({}, {coordinator::After(6),
                   coordinator::Ranks({verdict::At50(0).Silent(6),
                                       verdict::After49(1).Stopped(SIGSTOP).Silent(0.05)}),
                   coordinator::Stopped(1, SIGSTOP), IsOverdue(0),
                   coordinator::Of(coordinator::EventKind::kContinued, 1), BothDone(), Finished(0),
                   Finished(1), coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

// It computed for longer than the deadline, which is no proof while others are not silent.
TEST(CaseRunnerStop, AStopForAMomentOfARankThatIsLate) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(1),
                                       verdict::After49(1).Stopped(SIGSTOP).Silent(6)}),
                   coordinator::Stopped(1, SIGSTOP), Quiet(0), IsOverdue(1),
                   coordinator::Of(coordinator::EventKind::kContinued, 1), BothDone(), Finished(0),
                   Finished(1), coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

TEST(CaseRunnerStop, AStoppedRankMayBeContinuedBeforeTheOthersWait) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::After49(0), verdict::After49(1).Stopped(SIGSTOP)}),
                   coordinator::Stopped(1, SIGSTOP),
                   coordinator::Of(coordinator::EventKind::kContinued, 1), BothDone(), Finished(0),
                   Finished(1), coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

// They hang; a stop of a moment is not why. It came and went between two looks of its agent, which
// told of the silence before.
TEST(CaseRunnerStop, AStopForAMomentOfARankThatHangs) {
  EXPECT_EQ(
      Conduct(
          {},
          {coordinator::Ranks({verdict::At50(0).Silent(5), verdict::After49(1).Stopped(SIGSTOP)}),
           IsOverdue(1), IsOverdue(0), coordinator::After(0.1),
           coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)})}),
      "fail: hung,hung after 0.501 s\n"
      "rank_busy of 1, suspected\n");
}

}  // namespace
}  // namespace lockstep::stress::run
