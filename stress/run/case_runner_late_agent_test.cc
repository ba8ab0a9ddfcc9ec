// Recoveries whose orders, answers or connections a late agent holds up. An Abort() may take 5 s,
// connecting 15 s, each within a time of the worker's own: whom an agent kept waiting is unknown.
// What an agent tells late may be known from others. So it is where a rank gets no processor.
#include "gtest/gtest.h"
#include "stress/run/testing/recovery_lists.h"

namespace lockstep::stress::run {
namespace {

TEST(CaseRunnerLateAgent, AnAbortThatALateAgentTellsOfIsNotHung) {
  EXPECT_EQ(Conduct(kShrink,
                    coordinator::Steps(
                        coordinator::Ranks({verdict::At50(0), Killed(1), verdict::At50(2)}),
                        coordinator::Signalled(1, SIGKILL), coordinator::When("send 2 abort 0"),
                        Aborted(0, 0), Raised(0, kGaveUp, 4), coordinator::After(4),
                        coordinator::Late(), coordinator::After(4), Aborted(2, 0),
                        coordinator::Ranks({Fails(0), Killed(1), Fails(2)}), Raised(2, kGaveUp, 3),
                        Rebuilt({0, 2}, 1, 8.02), Over({Done(0), Killed(1), Done(2)}, {0, 2}))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 8.000 0.020 0.000\n"
            "fail: finished,killed,finished after 0.001 s\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerLateAgent, NobodyIsBlamedWhoConnectsThroughALateAgent) {
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                           Connecting(0, 1, 0, 2), coordinator::After(3), coordinator::Late())),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: rebuild_failed, lost 1, members 0,2, from 3; s: - 0.010 - -\n"
      "unknown: hung,killed,hung after 0.101 s\n"
      "rank_killed of 1, proved\n"
      "because an agent was late while ranks connected anew through it\n");
}

// The errors of the others prove it, so the rank itself is told to abort, too.
TEST(CaseRunnerLateAgent, AnExitThatItsAgentTellsOfLastIsToldOnce) {
  const verdict::History left = verdict::After49(1).Exited(0);
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           coordinator::Ranks({Fails(0), left, Fails(2)}), Raised(0, kClosed),
                           Raised(2, kClosed), coordinator::When("send 2 abort 0"),
                           coordinator::Exited(1, 0), Aborted(0, 0), Aborted(2, 0),
                           Rebuilt({0, 2}, 1, 0.02), Over({Done(0), left, Done(2)}, {0, 2}))),
      "send 0 abort 0\n"
      "send 1 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.000 0.020 0.000\n"
      "fail: finished,failed,finished after 0.001 s\n"
      "rank_exited of 1, proved\n");
}

// Both gave their communicator up, and get a processor only after 9 s.
TEST(CaseRunnerLateAgent, WhoGetsNoProcessorIsNotLost) {
  EXPECT_EQ(
      Conduct(kShrink,
              coordinator::Steps(
                  KilledIn50(), coordinator::When("send 2 abort 0"), Aborted(0, 0), Aborted(2, 0),
                  coordinator::After(4.9),
                  coordinator::Ranks({verdict::At50(0).Silent(5).Starved(4), Killed(1),
                                      verdict::At50(2).Silent(5).Starved(3)}),
                  coordinator::After(4), coordinator::Ranks({Fails(0), Killed(1), Fails(2)}),
                  Raised(0, kGaveUp, 4), Raised(2, kGaveUp, 3), Rebuilt({0, 2}, 1, 9.03),
                  Over({Done(0), Killed(1), Done(2)}, {0, 2}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 8.900 0.030 0.000\n"
      "fail: finished,killed,finished after 0.101 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunnerLateAgent, WhoNeverGetsAProcessorIsUnknownAtTheLimit) {
  coordinator::Script script = coordinator::Steps(KilledIn50(), coordinator::When("send 2 abort 0"),
                                                  Aborted(0, 0), Aborted(2, 0));
  for (const double waited_s : {4, 8, 12, 16}) {
    coordinator::Append(script, coordinator::After(4));
    coordinator::Append(script, coordinator::Ranks(
                                    {verdict::At50(0).Silent(waited_s).Starved(waited_s), Killed(1),
                                     verdict::At50(2).Silent(waited_s).Starved(waited_s)}));
  }
  StressScript limited = kShrink;
  limited.limit_seconds = 20;
  EXPECT_EQ(Conduct(limited, script),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "recovery 1: cut_short, lost 1, members , from 0; s: - - - -\n"
            "unknown: hung,killed,hung after 0.101 s\n"
            "rank_killed of 1, proved\n"
            "because not over after 20 s (--limit)\n");
}

}  // namespace
}  // namespace lockstep::stress::run
