// Ranks of a recovery while they connect anew, as the case runner sees them. Rank 1 of three was
// lost; connecting may take 15 s.
#include "gtest/gtest.h"
#include "stress/run/testing/recovery_lists.h"

namespace lockstep::stress::run {
namespace {

TEST(CaseRunnerConnecting, ARankThatTakesAnotherPlace) {
  EXPECT_EQ(Conduct(kShrink,
                    coordinator::Steps(KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                                       Connecting(0, 1, 0, 2), Connecting(2, 1, 2, 3))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: rebuild_failed, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
            "  init_failure of 2, proved\n"
            "fail: hung,killed,hung after 0.101 s\n"
            "init_failure of 2, proved\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerConnecting, OneDoesNotEvenTryToConnect) {
  EXPECT_EQ(Conduct(kShrink,
                    coordinator::Steps(KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                                       Connecting(0, 1, 0, 2))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: rebuild_failed, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
            "  init_failure of 2, suspected\n"
            "fail: hung,killed,hung after 0.101 s\n"
            "init_failure of 2, suspected\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerConnecting, OneTriesToConnectInVain) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                           Connecting(0, 1, 0, 2), Connected(0, 1, 0.12), Connecting(2, 1, 1, 2))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: rebuild_failed, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
      "  init_failure of 2, suspected\n"
      "fail: hung,killed,hung after 0.101 s\n"
      "init_failure of 2, suspected\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerConnecting, ConnectionsOfAnotherGenerationAreNone) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                           Connecting(0, 1, 0, 2), Connecting(2, 1, 1, 2), Connected(0, 1, 0.12),
                           Connected(2, 0, 0.12), coordinator::Said(2, kConnectedMessage, "1"))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: rebuild_failed, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
      "  init_failure of 2, suspected\n"
      "fail: hung,killed,hung after 0.101 s\n"
      "init_failure of 2, suspected\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerConnecting, TheNewcomerOfARestartDoesNotConnect) {
  EXPECT_EQ(Conduct(kRestart,
                    coordinator::Steps(KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                                       Connecting(0, 1, 0, 3), Connecting(2, 1, 2, 3))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "start 1\n"
            "send 0 rebuild: generation 1 as 0 of 3 from 3\n"
            "send 1 case: generation 1 as 1 of 3 from 3\n"
            "send 2 rebuild: generation 1 as 2 of 3 from 3\n"
            "recovery 1: rebuild_failed, lost 1, members 0,1,2, from 3; s: - 0.010 - -\n"
            "  init_failure of 1, suspected\n"
            "fail: hung,killed,hung after 0.101 s\n"
            "init_failure of 1, suspected\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerConnecting, NobodyIsBlamedWhenConnectingWasCutShort) {
  EXPECT_EQ(Conduct(kShrink,
                    coordinator::Steps(KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                                       Connecting(0, 1, 0, 2), Terminate())),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "save\n"
            "no stacks\n"
            "recovery 1: cut_short, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
            "unknown: hung,killed,hung after 0.101 s\n"
            "rank_killed of 1, proved\n"
            "because ended by a signal\n"
            "no further case\n");
}

TEST(CaseRunnerConnecting, AHostIsLostWhileTheyConnect) {
  StressScript script = kShrink;
  script.hosts = {"a", "a", "b"};
  EXPECT_EQ(Conduct(script,
                    coordinator::Steps(KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                                       Connecting(0, 1, 0, 2),
                                       coordinator::Ranks({Fails(0), Killed(1), Fails(2).Lost()}),
                                       coordinator::Lost(2, verdict::Loss::kClosed))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: cut_short, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
            "fail: hung,killed,killed after 0.101 s\n"
            "host_lost of 2, proved\n"
            "rank_killed of 1, proved\n"
            "no further case\n");
}

TEST(CaseRunnerConnecting, SilenceWhileTheyConnectIsNoSecondFailure) {
  EXPECT_EQ(
      Conduct(kShrink,
              coordinator::Steps(
                  KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                  Connecting(0, 1, 0, 2), coordinator::After(6),
                  coordinator::Ranks({Fails(0).In(journal::Phase::kConnect).Silent(6), Killed(1),
                                      Fails(2).In(journal::Phase::kLoad).Silent(6)}),
                  coordinator::Of(coordinator::EventKind::kOverdue, 0), coordinator::After(1),
                  Connecting(2, 1, 1, 2), Connected(0, 1, 7.1), Connected(2, 1, 7.1),
                  Over({Done(0), Killed(1), Done(2)}, {0, 2}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 6.990 0.000\n"
      "fail: finished,killed,finished after 0.101 s\n"
      "rank_killed of 1, proved\n");
}

// All that it had to do was done before the agent of the last rank told that this one connected.
TEST(CaseRunnerConnecting, WhoConnectedAndLeftIsNotLost) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(
                                 KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                                 Connecting(0, 1, 0, 2), Connected(0, 1, 0.12),
                                 Connecting(2, 1, 1, 2), Over({Done(0), Killed(1), Done(2)}, {0}),
                                 Connected(2, 1, 0.12), Over({Done(0), Killed(1), Done(2)}, {2}))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 0.000\n"
            "fail: finished,killed,finished after 0.101 s\n"
            "rank_killed of 1, proved\n");
}

// The others may still connect; when they did not in the time that they have, they are told.
TEST(CaseRunnerConnecting, WhoConnectedAndDiedIsLost) {
  const verdict::History lost = Fails(2).In(journal::Phase::kConnect).Signalled(SIGKILL);
  const verdict::History connects = Fails(0).In(journal::Phase::kConnect);
  const verdict::History over =
      verdict::History(connects).On(2).Does(verdict::AllReduce(), 3).Leaves(0);
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                           Connecting(0, 1, 0, 2), Connecting(2, 1, 1, 2), Connected(2, 1, 0.12),
                           coordinator::Ranks({connects, Killed(1), lost}),
                           coordinator::Signalled(2, SIGKILL), coordinator::When("send 0 abort 1"),
                           Aborted(0, 1), Raised(0, "connect: aborted"), Rebuilt({0}, 2, 16.14),
                           Over({over, Killed(1), lost}, {0}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "send 0 abort 1\n"
      "end 2\n"
      "send 0 rebuild: generation 2 as 0 of 1 from 3\n"
      "recovery 1: rebuild_failed, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
      "recovery 2: resumed, lost 2, members 0, from 3; s: - 0.000 0.025 0.000\n"
      "fail: finished,killed,killed after 0.101 s\n"
      "rank_killed of 1, proved\n"
      "rank_killed of 2, proved\n");
}

}  // namespace
}  // namespace lockstep::stress::run
