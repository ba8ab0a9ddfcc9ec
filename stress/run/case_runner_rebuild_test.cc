// Recoveries as the case runner orders them, from the abort on: new members, the first collective,
// and the next loss. Rank 1 of three was lost.
#include "gtest/gtest.h"
#include "stress/run/testing/recovery_lists.h"

namespace lockstep::stress::run {
namespace {

TEST(CaseRunnerRebuild, ARankThatCannotBeStartedAnew) {
  EXPECT_EQ(Conduct(kRestart, coordinator::Steps(
                                  KilledIn50(), GivenUp(),
                                  coordinator::Refused(EnvironmentError("no processes left")))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "start 1\n"
            "recovery 1: cut_short, lost 1, members , from 3; s: - 0.010 - -\n"
            "unknown: hung,killed,hung after 0.101 s\n"
            "rank_killed of 1, proved\n"
            "because no processes left\n");
}

TEST(CaseRunnerRebuild, AnotherLossWhileTheyRebuild) {
  const verdict::History connects = Fails(0).In(journal::Phase::kConnect);
  const verdict::History lost = Fails(2).In(journal::Phase::kConnect).Signalled(SIGKILL);
  const verdict::History over =
      verdict::History(connects).On(2).Does(verdict::AllReduce(), 3).Leaves(0);
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(
                           KilledIn50(), GivenUp(), coordinator::When("send 2 rebuild"),
                           Connecting(0, 1, 0, 2), coordinator::Ranks({connects, Killed(1), lost}),
                           coordinator::Signalled(2, SIGKILL), coordinator::When("send 0 abort 1"),
                           Aborted(0, 1), Raised(0, "connect: aborted"), Rebuilt({0}, 2, 0.14),
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

// Rank 1 is killed, then rank 2; both are started anew.
TEST(CaseRunnerRebuild, TwoLossesOneAfterTheOther) {
  const auto at = [](verdict::History rank) {
    return rank.On(1).Does(verdict::AllReduce(), 9).Enters(verdict::AllReduce());
  };
  const auto did = [](verdict::History rank) {
    return rank.On(1)
        .Does(verdict::AllReduce(), 9)
        .FailsIn(verdict::AllReduce())
        .On(2)
        .Does(verdict::AllReduce())
        .Leaves(0);
  };
  const verdict::History anew = verdict::History(1).In(journal::Phase::kMeasure);
  EXPECT_EQ(
      Conduct(kRestart,
              coordinator::Steps(
                  KilledIn50(), GivenUp(), Rebuilt({0, 1, 2}, 1, 0.12), coordinator::After(1),
                  coordinator::Ranks({at(Fails(0)), at(anew), at(Fails(2)).Signalled(SIGKILL)}),
                  coordinator::Signalled(2, SIGKILL), coordinator::When("send 1 abort 1"),
                  Aborted(0, 1), Aborted(1, 1), Raised(0, kGaveUp, 6), Raised(1, kGaveUp, 6),
                  Rebuilt({0, 1, 2}, 2, 1.15),
                  Over({did(Fails(0)), did(anew),
                        verdict::History(2).On(2).Does(verdict::AllReduce()).Leaves(0)},
                       {0, 1, 2}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "start 1\n"
      "send 0 rebuild: generation 1 as 0 of 3 from 3\n"
      "send 1 case: generation 1 as 1 of 3 from 3\n"
      "send 2 rebuild: generation 1 as 2 of 3 from 3\n"
      "send 0 abort 1\n"
      "send 1 abort 1\n"
      "end 2\n"
      "start 2\n"
      "send 0 rebuild: generation 2 as 0 of 3 from 6\n"
      "send 1 rebuild: generation 2 as 1 of 3 from 6\n"
      "send 2 case: generation 2 as 2 of 3 from 6\n"
      "recovery 1: resumed, lost 1, members 0,1,2, from 3; s: - 0.010 0.010 -\n"
      "recovery 2: resumed, lost 2, members 0,1,2, from 6; s: - 0.000 0.020 0.000\n"
      "pass: finished,finished,finished after 0.101 s\n"
      "rank_killed of 1, proved\n"
      "rank_killed of 2, proved\n");
}

// Of one communicator after the other, in the second all_reduce; the newcomer did only the last.
verdict::RankEvidence InGeneration(int rank, int last) {
  verdict::History history = verdict::History(rank).In(journal::Phase::kMeasure);
  for (int i = rank == 1 ? last : 0; i < last; ++i) {
    history.On(static_cast<std::uint16_t>(i))
        .Does(verdict::AllReduce())
        .FailsIn(verdict::AllReduce());
  }
  history.On(static_cast<std::uint16_t>(last))
      .Does(verdict::AllReduce())
      .Enters(verdict::AllReduce());
  return rank == 1 ? history.Signalled(SIGKILL) : history;
}

TEST(CaseRunnerRebuild, MoreLossesThanAreRecoveredFrom) {
  coordinator::Script steps;
  for (int i = 0; i < 5; ++i) {
    const coordinator::ScriptStep look =
        coordinator::Ranks({InGeneration(0, i), InGeneration(1, i), InGeneration(2, i)});
    coordinator::Append(steps, coordinator::Steps(look, coordinator::Signalled(1, SIGKILL)));
    if (i == 4) break;
    coordinator::Append(steps,
                        coordinator::Steps(coordinator::When("send 2 abort"), Aborted(0, i),
                                           Raised(0, kGaveUp), Aborted(2, i), Raised(2, kGaveUp),
                                           Rebuilt({0, 1, 2}, i + 1, 0.02 * (i + 1))));
  }
  EXPECT_EQ(Conduct(kRestart, steps),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "start 1\n"
            "send 0 rebuild: generation 1 as 0 of 3 from 3\n"
            "send 1 case: generation 1 as 1 of 3 from 3\n"
            "send 2 rebuild: generation 1 as 2 of 3 from 3\n"
            "send 0 abort 1\n"
            "send 2 abort 1\n"
            "end 1\n"
            "start 1\n"
            "send 0 rebuild: generation 2 as 0 of 3 from 3\n"
            "send 1 case: generation 2 as 1 of 3 from 3\n"
            "send 2 rebuild: generation 2 as 2 of 3 from 3\n"
            "send 0 abort 2\n"
            "send 2 abort 2\n"
            "end 1\n"
            "start 1\n"
            "send 0 rebuild: generation 3 as 0 of 3 from 3\n"
            "send 1 case: generation 3 as 1 of 3 from 3\n"
            "send 2 rebuild: generation 3 as 2 of 3 from 3\n"
            "send 0 abort 3\n"
            "send 2 abort 3\n"
            "end 1\n"
            "start 1\n"
            "send 0 rebuild: generation 4 as 0 of 3 from 3\n"
            "send 1 case: generation 4 as 1 of 3 from 3\n"
            "send 2 rebuild: generation 4 as 2 of 3 from 3\n"
            "recovery 1: resumed, lost 1, members 0,1,2, from 3; s: - 0.000 0.020 -\n"
            "recovery 2: resumed, lost 1, members 0,1,2, from 3; s: - 0.000 0.020 -\n"
            "recovery 3: resumed, lost 1, members 0,1,2, from 3; s: - 0.000 0.020 -\n"
            "recovery 4: resumed, lost 1, members 0,1,2, from 3; s: - 0.000 0.020 0.000\n"
            "fail: hung,killed,hung after 0.001 s\n"
            "rank_killed of 1, proved\n"
            "rank_killed of 1, proved\n"
            "rank_killed of 1, proved\n"
            "rank_killed of 1, proved\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRebuild, AHostIsLost) {
  StressScript script = kShrink;
  script.hosts = {"a", "a", "b"};
  EXPECT_EQ(
      Conduct(script, coordinator::Steps(KilledIn50(), GivenUp(), Rebuilt({0, 2}, 1, 0.12),
                                         coordinator::Ranks({Done(0), Killed(1), Fails(2).Lost()}),
                                         coordinator::Lost(2, verdict::Loss::kClosed))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 -\n"
      "fail: finished,killed,killed after 0.101 s\n"
      "host_lost of 2, proved\n"
      "rank_killed of 1, proved\n"
      "no further case\n");
}

TEST(CaseRunnerRebuild, TheFirstCollectiveIsNeverSeen) {
  const verdict::History none = Fails(0).Leaves(0);
  EXPECT_EQ(
      Conduct(kShrink, coordinator::Steps(KilledIn50(), GivenUp(), Rebuilt({0, 2}, 1, 0.12),
                                          coordinator::After(40),
                                          Over({none, Killed(1), Fails(2).Leaves(0)}, {0, 2}))),
      "send 0 abort 0\n"
      "send 2 abort 0\n"
      "end 1\n"
      "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
      "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
      "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 -\n"
      "fail: finished,killed,finished after 0.101 s\n"
      "rank_killed of 1, proved\n");
}

// The second communicator was used, the third never came to be.
TEST(CaseRunnerRebuild, AResumeIsOfTheRecoveryThatMadeIt) {
  const auto in = [](int rank) {
    return Fails(rank).On(1).Does(verdict::AllReduce()).Enters(verdict::AllReduce());
  };
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(
                                 KilledIn50(), GivenUp(), Rebuilt({0, 2}, 1, 0.12),
                                 coordinator::Ranks({in(0), Killed(1), in(2).Signalled(SIGKILL)}),
                                 coordinator::Signalled(2, SIGKILL))),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "send 0 abort 1\n"
            "end 0\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 0.000\n"
            "recovery 2: abort_hung, lost 2, members , from 0; s: - - - -\n"
            "  abort_hung of 0, suspected\n"
            "fail: hung,killed,killed after 0.101 s\n"
            "abort_hung of 0, suspected\n"
            "rank_killed of 2, proved\n"
            "rank_killed of 1, proved\n");
}

TEST(CaseRunnerRebuild, ToldToEndAfterIt) {
  EXPECT_EQ(Conduct(kShrink, coordinator::Steps(KilledIn50(), GivenUp(), Rebuilt({0, 2}, 1, 0.12),
                                                coordinator::Ranks({Fails(0), Killed(1), Fails(2)}),
                                                coordinator::After(1), Terminate())),
            "send 0 abort 0\n"
            "send 2 abort 0\n"
            "end 1\n"
            "send 0 rebuild: generation 1 as 0 of 2 from 3\n"
            "send 2 rebuild: generation 1 as 1 of 2 from 3\n"
            "save\n"
            "no stacks\n"
            "recovery 1: resumed, lost 1, members 0,2, from 3; s: - 0.010 0.010 -\n"
            "unknown: finished,killed,finished after 0.101 s\n"
            "rank_killed of 1, proved\n"
            "because ended by a signal\n"
            "no further case\n");
}

}  // namespace
}  // namespace lockstep::stress::run
