// Recoveries as the case runner orders them, up to the abort: whose failure it is, who is lost, who
// gives up. Rank 1 of three is lost unless the list says otherwise; an abort may take 5 s.
#include "gtest/gtest.h"
#include "stress/run/testing/recovery_lists.h"

namespace lockstep::stress::run {
namespace {

TEST(CaseRunnerRecovery, NobodyIsLost) {
  EXPECT_EQ(Conduct(kShrink, Over({verdict::After49(0).Leaves(0), verdict::After49(1).Leaves(0),
                                   verdict::After49(2).Leaves(0)},
                                  {0, 1, 2})),
            "pass: finished,finished,finished\n");
}

TEST(CaseRunnerRecovery, ShrinkAfterAKill) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(KilledIn50(), GivenUp(), Rebuilt({0, 2}, 1, 0.12),
                                                Over({Done(0), Killed(1), Done(2)}, {0, 2}))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 0.000\n"
            "fail: finished,killed,finished after 0.101 s\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, RestartAfterAKill) {
  const verdict::History anew = verdict::History(1)
                                    .In(journal::Phase::kMeasure)
                                    .On(1)
                                    .Does(verdict::AllReduce(), 10)
                                    .Leaves(0);
  EXPECT_EQ(
      Conduct(kRestart, coordinator::Steps(KilledIn50(), GivenUp(), Rebuilt({0, 1, 2}, 1, 0.12),
                                           Over({Done(0), anew, Done(2)}, {0, 1, 2}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "start 1\n"
      "send 0 rebuild: generation 1 as 0 of 3 from 3\n"
      "send 1 case: generation 1 as 1 of 3 from 3\n"
      "send 2 rebuild: generation 1 as 2 of 3 from 3\n"
      "recovery 1: resumed, lost 1, members 0,1,2, from 3; s: - 0.010 0.010 0.000\n"
      "pass: finished,finished,finished after 0.101 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, DetectionBeginsWithTheFaultOfTheClock) {
  StressScript script = kShrink;
  script.faults = {
      {faults::FaultKind::kKill, 1, {faults::FaultMoment::Kind::kTime, 0, 0.03}, std::nullopt}};
  EXPECT_EQ(Conduct(script, coordinator::Steps(coordinator::When("signal 1"), KilledIn50(),
                                               GivenUp(), Rebuilt({0, 2}, 1, 0.15),
                                               Over({Done(0), Killed(1), Done(2)}, {0, 2}))),
            "signal 1 9\n"
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3 fired 0\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3 fired 0\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: 0.100 0.010 0.010 0.000\n"
            "fail: finished,killed,finished after 0.131 s\n"
            "rank_killed of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerRecovery, AFaultBefallsNobodyTwice) {
  StressScript script = kShrink;
  script.faults = {
      {faults::FaultKind::kExit, 1, {faults::FaultMoment::Kind::kIteration, 3, 0}, std::nullopt}};
  const verdict::History left = verdict::After49(1).Exited(0);
  EXPECT_EQ(Conduct(script,
                    coordinator::Steps(
                        Fired(1, 0), coordinator::Ranks({verdict::At50(0), left, verdict::At50(2)}),
                        coordinator::Exited(1, 0), GivenUp(), Rebuilt({0, 2}, 1, 0.02),
                        Over({Done(0), left, Done(2)}, {0, 2}))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3 fired 0\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3 fired 0\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 0.000\n"
            "fail: finished,failed,finished after 0.001 s\n"
            "rank_exited of 1, proved\n"
            "fault 0 fired\n");
}

TEST(CaseRunnerRecovery, AStoppedRankIsEnded) {
  const verdict::History stopped = verdict::After49(1).Stopped(SIGSTOP);
  StressScript script = kShrink;
  script.faults = {
      {faults::FaultKind::kStop, 1, {faults::FaultMoment::Kind::kIteration, 3, 0}, std::nullopt}};
  EXPECT_EQ(
      Conduct(script,
              coordinator::Steps(
                  Fired(1, 0), coordinator::Ranks({verdict::At50(0), stopped, verdict::At50(2)}),
                  coordinator::Stopped(1, SIGSTOP), GivenUp(), Rebuilt({0, 2}, 1, 0.02),
                  Over({Done(0), stopped, Done(2)}, {0, 2}))),
      "signal 1 19\n"
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3 fired 0\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3 fired 0\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 0.000\n"
      "fail: finished,stopped,finished after 0.001 s\n"
      "rank_stopped of 1, proved\n"
      "fault 0 fired\n");
}

TEST(CaseRunnerRecovery, AFailedCollectiveLosesNobody) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(
                                 coordinator::Ranks({Fails(0), Fails(1), Fails(2)}),
                                 Raised(1, "no route", 2), Raised(0, kClosed), Raised(2, kClosed),
                                 coordinator::When("send 2 abort 0"), Aborted(0, 0), Aborted(1, 0),
                                 Aborted(2, 0), Rebuilt({0, 1, 2}, 1, 0.02),
                                 Over({Done(0), Done(1), Done(2)}, {0, 1, 2}))),
            "send 0 abort 0\n"
            "send 1 abort 0\n"
            "send 2 abort 0\n"
            "send 0 rebuild: generation 1 as 0 of 3 from 2\n"
            "send 1 rebuild: generation 1 as 1 of 3 from 2\n"
            "send 2 rebuild: generation 1 as 2 of 3 from 2\n"
            "recovery 1: resumed, lost , members 0,1,2, from 2; s: - 0.000 0.020 0.000\n"
            "pass: finished,finished,finished after 0.001 s\n"
            "rank_failed of 1, proved\n");
}

TEST(CaseRunnerRecovery, EchoesComeBeforeTheirCause) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(coordinator::Ranks({Fails(0), Fails(1), Fails(2)}),
                                          Raised(0, kClosed), Raised(2, kClosed),
                                          coordinator::After(0.15), Raised(1, "no route"),
                                          coordinator::When("send 2 abort 0"), Aborted(0, 0),
                                          Aborted(1, 0), Aborted(2, 0), Rebuilt({0, 1, 2}, 1, 0.17),
                                          Over({Done(0), Done(1), Done(2)}, {0, 1, 2}))),
      "send 0 abort 0\n"
      "send 1 abort 0\n"
      "send 2 abort 0\n"
      "send 0 rebuild: generation 1 as 0 of 3 from 3\n"
      "send 1 rebuild: generation 1 as 1 of 3 from 3\n"
      "send 2 rebuild: generation 1 as 2 of 3 from 3\n"
      "recovery 1: resumed, lost , members 0,1,2, from 3; s: - 0.000 0.020 0.000\n"
      "pass: finished,finished,finished after 0.151 s\n"
      "rank_failed of 1, proved\n");
}

TEST(CaseRunnerRecovery, NothingComesAfterEchoes) {
  EXPECT_EQ(Conduct(kShrink,
                    coordinator::Steps(coordinator::Ranks({Fails(0), Fails(1), Fails(2)}),
                                       Raised(0, kClosed), Raised(1, kClosed), Raised(2, kClosed),
                                       coordinator::When("send 2 abort 0"), Aborted(0, 0),
                                       Aborted(1, 0), Aborted(2, 0), Rebuilt({0, 1, 2}, 1, 0.22),
                                       Over({Done(0), Done(1), Done(2)}, {0, 1, 2}))),
            "send 0 abort 0\n"
            "send 1 abort 0\n"
            "send 2 abort 0\n"
            "send 0 rebuild: generation 1 as 0 of 3 from 3\n"
            "send 1 rebuild: generation 1 as 1 of 3 from 3\n"
            "send 2 rebuild: generation 1 as 2 of 3 from 3\n"
            "recovery 1: resumed, lost , members 0,1,2, from 3; s: - 0.000 0.020 0.000\n"
            "pass: finished,finished,finished after 0.201 s\n"
            "rank_failed of 0,1,2, suspected\n");
}

TEST(CaseRunnerRecovery, AllAreSilentAndOneIsBlamed) {
  EXPECT_EQ(
      Conduct(kShrink,
              coordinator::Steps(
                  coordinator::After(6),
                  coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6),
                                      verdict::At50(2).Silent(6)}),
                  coordinator::Of(coordinator::EventKind::kOverdue, 0), GivenUp(),
                  Rebuilt({0, 2}, 1, 6.03), Over({Done(0), verdict::After49(1), Done(2)}, {0, 2}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.020 0.000\n"
      "fail: finished,hung,finished after 5.000 s\n"
      "rank_busy of 1, suspected\n");
}

TEST(CaseRunnerRecovery, WhoIsOnlySlowComesLater) {
  EXPECT_EQ(Conduct(kShrink,
                    coordinator::Steps(
                        coordinator::Ranks({verdict::At50(0), Killed(1), verdict::After49(2)}),
                        coordinator::Signalled(1, SIGKILL), coordinator::When("send 2 abort 0"),
                        Aborted(0, 0), Raised(0, kGaveUp, 4), Aborted(2, 0), coordinator::After(3),
                        coordinator::Ranks({Fails(0), Killed(1), Fails(2)}), Raised(2, kGaveUp, 3),
                        Rebuilt({0, 2}, 1, 3.02), Over({Done(0), Killed(1), Done(2)}, {0, 2}))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.000 0.020 0.000\n"
            "fail: finished,killed,finished after 0.001 s\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, WhoNeverComesIsLostToo) {
  EXPECT_EQ(
      Conduct(kShrink,
              coordinator::Steps(
                  coordinator::Ranks({verdict::At50(0), Killed(1), verdict::After49(2)}),
                  coordinator::Signalled(1, SIGKILL), coordinator::When("send 2 abort 0"),
                  Aborted(0, 0), coordinator::Ranks({Fails(0), Killed(1), verdict::After49(2)}),
                  Raised(0, kGaveUp, 4), Aborted(2, 0), coordinator::After(5),
                  Rebuilt({0}, 1, 5.02), Over({Done(0), Killed(1), verdict::After49(2)}, {0}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "end 2\n"
      "send 0 rebuild: generation 1 as 0 of 1 from 4\n"
      "recovery 1: resumed, lost 1,2, members 0, from 4; s: - 0.000 0.020 0.000\n"
      "fail: finished,killed,hung after 0.001 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, ASurvivorFinishesMeanwhile) {
  const verdict::History killed = verdict::After49(1).Does(verdict::AllReduce()).Signalled(SIGKILL);
  const verdict::History two = verdict::After49(2).Does(verdict::AllReduce());
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           coordinator::Ranks({verdict::At50(0), killed, two}),
                           coordinator::Signalled(1, SIGKILL), coordinator::When("send 2 abort 0"),
                           Aborted(0, 0),
                           coordinator::Ranks({Fails(0), killed, verdict::History(two).Leaves(0)}),
                           Raised(0, kGaveUp, 4), Aborted(2, 0), Finished(2),
                           coordinator::Exited(2, 0), Rebuilt({0}, 1, 0.02),
                           Over({Done(0), killed, verdict::History(two).Leaves(0)}, {0}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 1 from 4\n"
      "recovery 1: resumed, lost 1, members 0, from 4; s: - 0.000 0.020 0.000\n"
      "fail: finished,killed,finished after 0.001 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, ASurvivorDiesWhileItAborts) {
  const verdict::History crashed = verdict::At50(2).Signalled(SIGSEGV);
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(KilledIn50(), coordinator::When("send 2 abort 0"),
                                          Aborted(0, 0), Raised(0, kGaveUp, 4),
                                          coordinator::Ranks({Fails(0), Killed(1), crashed}),
                                          coordinator::Signalled(2, SIGSEGV), Rebuilt({0}, 1, 0.12),
                                          Over({Done(0), Killed(1), crashed}, {0}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "end 2\n"
      "send 0 rebuild: generation 1 as 0 of 1 from 4\n"
      "recovery 1: resumed, lost 1,2, members 0, from 4; s: - 0.000 0.020 0.000\n"
      "fail: finished,killed,crashed after 0.101 s\n"
      "rank_killed of 1, proved\n"
      "rank_crashed of 2, proved\n");
}

TEST(CaseRunnerRecovery, NobodySurvivesTheAbort) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(KilledIn50(), coordinator::When("send 2 abort 0"),
                                          coordinator::Ranks({Killed(0), Killed(1), Killed(2)}),
                                          coordinator::Signalled(0, SIGKILL),
                                          coordinator::Signalled(2, SIGKILL))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "recovery 1: rebuild_failed, lost 1,0,2, members , from 0; s: - 0.000 - -\n"
      "fail: killed,killed,killed after 0.101 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, AnAbortThatDoesNotReturn) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(KilledIn50(), Aborted(0, 0), Raised(0, kGaveUp))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 2\n"
            "recovery 1: abort_hung, lost 1, members , from 0; s: - - - -\n"
            "  abort_hung of 2, suspected\n"
            "fail: hung,killed,hung after 0.101 s\n"
            "abort_hung of 2, suspected\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, AnAbortThatReturnsAndLeavesTheCallOpen) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(KilledIn50(), Aborted(0, 0), Raised(0, kGaveUp),
                                                Aborted(2, 0))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 2\n"
            "recovery 1: abort_hung, lost 1, members , from 0; s: - - - -\n"
            "  abort_hung of 2, suspected\n"
            "fail: hung,killed,hung after 0.101 s\n"
            "abort_hung of 2, suspected\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, TheAbortOfAnotherGenerationIsNone) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(KilledIn50(), Aborted(0, 1), Raised(0, kGaveUp),
                                                Aborted(2, 7), Raised(2, kGaveUp))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 0\n"
            "end 2\n"
            "recovery 1: abort_hung, lost 1, members , from 0; s: - - - -\n"
            "  abort_hung of 0,2, suspected\n"
            "fail: failed,killed,failed after 0.101 s\n"
            "abort_hung of 0,2, suspected\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRecovery, NobodySurvives) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(coordinator::Ranks({Killed(0), Killed(1), Killed(2)}),
                                          coordinator::Signalled(0, SIGKILL),
                                          coordinator::Signalled(1, SIGKILL),
                                          coordinator::Signalled(2, SIGKILL))),
      "fail: killed,killed,killed after 0.001 s\n"
      "rank_killed of 0,1,2, proved\n");
}

TEST(CaseRunnerRecovery, NobodyIsBlamedForAnAbortThatWasCutShort) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(KilledIn50(), coordinator::When("send 2 abort 0"),
                                                Aborted(0, 0), Terminate())),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "save\n"
            "no stacks\n"
            "recovery 1: cut_short, lost 1, members , from 0; s: - - - -\n"
            "unknown: hung,killed,hung after 0.101 s\n"
            "rank_killed of 1, proved\n"
            "because ended by a signal\n"
            "no further case\n");
}

TEST(CaseRunnerRecovery, NobodyIsLostWhoMayStillComeWhenAllIsCutShort) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           coordinator::Ranks({verdict::At50(0), Killed(1), verdict::After49(2)}),
                           coordinator::Signalled(1, SIGKILL), coordinator::When("send 2 abort 0"),
                           Aborted(0, 0), Raised(0, kGaveUp, 4), Aborted(2, 0),
                           coordinator::After(1), Terminate())),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "save\n"
      "no stacks\n"
      "recovery 1: cut_short, lost 1, members , from 0; s: - 0.000 - -\n"
      "unknown: hung,killed,finished after 0.001 s\n"
      "rank_killed of 1, proved\n"
      "because ended by a signal\n"
      "no further case\n");
}

TEST(CaseRunnerRecovery, AHostIsLostWhileTheyAbort) {
  StressScript script = kShrink;
  script.hosts = {"a", "a", "b"};
  EXPECT_EQ(Conduct(script, coordinator::Steps(KilledIn50(), coordinator::When("send 2 abort 0"),
                                               coordinator::Ranks({verdict::At50(0), Killed(1),
                                                                   verdict::At50(2).Lost()}),
                                               coordinator::Lost(2, verdict::Loss::kClosed))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "recovery 1: cut_short, lost 1, members , from 0; s: - - - -\n"
            "fail: hung,killed,killed after 0.101 s\n"
            "host_lost of 2, proved\n"
            "rank_killed of 1, proved\n"
            "no further case\n");
}

TEST(CaseRunnerRecovery, ToldToEndBeforeAnythingIsDone) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(coordinator::Ranks({verdict::At50(0), verdict::After49(1),
                                                              verdict::At50(2)}),
                                          Terminate())),
      "save\n"
      "no stacks\n"
      "unknown: finished,finished,finished\n"
      "because ended by a signal\n"
      "no further case\n");
}

}  // namespace
}  // namespace lockstep::stress::run
