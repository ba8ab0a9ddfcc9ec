// Ranks that exited, crashed, were killed or stopped, or reported an error.
#include <signal.h>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(RankExited, InsideACollectiveIsProvedAtOnce) {
  const Judgement judgement = JudgeAll({At50(0).Silent(0.1), At50(1).Exited(9), At50(2)});
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kFailed, Outcome::kHung));
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kRankExited);
  // A scenario's own step may end a rank, and watched programs are not ours.
  EXPECT_THAT(finding.remedy, HasSubstr("Look for exit() in the program, the library"));
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(1));
  EXPECT_THAT(finding.message,
              HasSubstr("rank 1 exited with code 9 in all_reduce 50 (sequence 49 of "));
  EXPECT_THAT(finding.message, HasSubstr("ranks 0 and 2 wait for it"));
  EXPECT_EQ(judgement.outcomes[1].exit_code, 9);
  EXPECT_THAT(judgement.outcomes[1].where, HasSubstr("all_reduce 50"));
  EXPECT_THAT(judgement.outcomes[0].evidence, HasSubstr("waiting for rank 1, which exited with"));
}

TEST(RankExited, CodeZeroInTheMiddleIsAFailureToo) {
  const Judgement inside = JudgeAll({At50(0), At50(1).Exited(0)});
  EXPECT_THAT(OutcomesOf(inside), ElementsAre(Outcome::kHung, Outcome::kFailed));
  EXPECT_EQ(inside.findings.at(0).cause, Cause::kRankExited);
  const Judgement between = JudgeAll({At50(0), After49(1).Exited(0)});
  EXPECT_THAT(OutcomesOf(between), ElementsAre(Outcome::kHung, Outcome::kFailed));
  EXPECT_THAT(between.findings.at(0).message, HasSubstr("after all_reduce 49"));
}

TEST(RankExited, OneThatFinishedInOrderIsBlamedOnlyIfAnotherWaitsForIt) {
  const Judgement waits = JudgeAll({At50(0), After49(1).Leaves(0)});
  EXPECT_THAT(OutcomesOf(waits), ElementsAre(Outcome::kHung, Outcome::kFinished));
  EXPECT_EQ(waits.findings.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(waits.findings[0].culprits, ElementsAre(1));

  const Judgement all_done = JudgeAll({After49(0).Leaves(0), After49(1).Leaves(0)});
  EXPECT_EQ(all_done.verdict, Verdict::kPass);
  EXPECT_THAT(all_done.findings, IsEmpty());

  // Rank 2's death is what rank 0 waits for: rank 1 had completed all that rank 0 is in.
  const Judgement other =
      JudgeAll({At50(0), After49(1).Does(AllReduce()).Leaves(0), At50(2).Signalled(SIGKILL)});
  ASSERT_EQ(other.findings.size(), 1u);
  EXPECT_EQ(other.findings[0].cause, Cause::kRankKilled);
}

TEST(RankExited, OneThatIsOnItsWayIsNotHung) {
  // Rank 1 had left the collective that rank 0 is still in: rank 0 will leave it as well.
  const Judgement judgement =
      JudgeAll({At50(0).Silent(0.1), After49(1).Does(AllReduce()).Exited(9)});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kFailed));
  EXPECT_THAT(judgement.findings.at(0).message, Not(HasSubstr("waits for it")));
  const Judgement past = JudgeAll(
      {After49(0).In(journal::Phase::kCheck), After49(1).In(journal::Phase::kCheck).Exited(9)});
  EXPECT_THAT(OutcomesOf(past), ElementsAre(Outcome::kFinished, Outcome::kFailed));
  EXPECT_THAT(past.findings.at(0).message, HasSubstr("while checking results after all_reduce 49"));
}

TEST(RankKilled, SigkillPointsToMemory) {
  const Judgement judgement = JudgeAll({At50(0), At50(1), At50(2).Signalled(SIGKILL)});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung, Outcome::kKilled));
  const Finding& finding = judgement.findings.at(0);
  EXPECT_EQ(finding.cause, Cause::kRankKilled);
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.message, HasSubstr("rank 2 was killed by SIGKILL in all_reduce 50"));
  EXPECT_THAT(finding.remedy, HasSubstr("oom"));
  EXPECT_EQ(judgement.outcomes[2].signal, SIGKILL);
  EXPECT_THAT(JudgeAll({At50(0).Signalled(SIGTERM)}).findings.at(0).remedy, HasSubstr("SIGTERM"));
}

TEST(RankCrashed, SignalsOfItsOwnMaking) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    const Judgement judgement = JudgeAll({At50(0).Signalled(signal), At50(1)});
    EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kCrashed, Outcome::kHung));
    EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankCrashed) << signal;
    EXPECT_THAT(judgement.findings[0].message, HasSubstr("crashed with SIG"));
  }
  for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EQ(JudgeAll({At50(0).Signalled(signal)}).findings.at(0).cause, Cause::kRankKilled)
        << signal;
  }
}

TEST(RankStopped, IsNamedWithItsPlace) {
  const Judgement judgement = JudgeAll({At50(0).Silent(6), After49(1).Stopped(SIGSTOP).Silent(6)});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kStopped));
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankStopped);
  EXPECT_TRUE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 1 is stopped by SIGSTOP"));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 0 waits for it in all_reduce 50"));
}

TEST(RankFailed, CarriesTheErrorOnOneLine) {
  const Judgement judgement =
      JudgeAll({At50(0), After49(1).FailsIn(AllReduce()).Reports("gloo: short read\n at pair.cc")});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kFailed));
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankFailed);
  EXPECT_THAT(judgement.findings[0].message,
              HasSubstr("rank 1 reported an error in all_reduce 50"));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("gloo: short read at pair.cc"));
  EXPECT_THAT(judgement.outcomes[0].evidence, HasSubstr("waiting for rank 1, which reported"));
}

TEST(RankFailed, AlsoWhenTheWorkerLeftBecauseOfIt) {
  const Judgement judgement =
      JudgeAll({At50(0), After49(1).FailsIn(AllReduce()).Reports("no route").Leaves(1)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankFailed);
  EXPECT_EQ(judgement.outcomes[1].outcome, Outcome::kFailed);
  EXPECT_EQ(judgement.outcomes[1].exit_code, 1);
}

// The text of what failed elsewhere is not the library's.
TEST(RankFailed, OutsideOfACollective) {
  const Judgement judgement =
      JudgeAll({History(0).Leaves(0),
                History(1).In(journal::Phase::kAllocate).Reports("no room").Leaves(4)});
  const Finding& finding = judgement.findings.at(0);
  EXPECT_EQ(finding.cause, Cause::kRankFailed);
  EXPECT_EQ(finding.message, "rank 1 reported an error while allocating memory: no room");
  EXPECT_EQ(judgement.outcomes[1].where, "allocating memory");
  EXPECT_THAT(finding.remedy, HasSubstr("outside of any collective: follow what the text says"));
  const Judgement in_call = JudgeAll({At50(0), After49(1).FailsIn(AllReduce()).Reports("no room")});
  EXPECT_THAT(in_call.findings.at(0).remedy, HasSubstr("the library's own"));
  const Judgement beside_call = JudgeAll({At50(0), At50(1).Reports("no room").Leaves(4)});
  EXPECT_THAT(beside_call.findings.at(0).remedy, StartsWith("Follow what the text says"));
}

TEST(RankFailed, ErrorsOfAConnectionEchoThatOfAPeer) {
  const auto judge = [](const std::string& error) {
    return JudgeAll({After49(0).FailsIn(AllReduce()).Reports("gloo: Connection closed by peer"),
                     After49(1).FailsIn(AllReduce()).Reports(error)});
  };
  const Judgement own = judge("gloo: all_reduce: std::bad_alloc");
  EXPECT_THAT(own.findings.at(0).culprits, ElementsAre(1));
  EXPECT_THAT(own.findings[0].message, HasSubstr("rank 0 failed in a collective because"));
  // A reset comes before what its victim closes.
  EXPECT_THAT(judge("gloo: Connection reset by peer").findings.at(0).culprits, ElementsAre(1));
  // Where nobody says more, both are told.
  const Judgement both = judge("gloo: Connection closed by peer");
  EXPECT_THAT(both.findings.at(0).culprits, ElementsAre(0, 1));
  // That a connection ended is an effect: only an error with a reason of its own is a cause.
  EXPECT_FALSE(both.findings[0].proved);
  for (const char* effect :
       {"gloo: Connection reset by peer", "remote process exited or there was a network error (6)",
        "gloo: Timed out waiting 30000ms for recv operation to complete",
        "gloo: [pair.cc:799] Connect timeout [10.0.0.2]:7047",
        "nccl: an operation was not complete within 30 s",
        "nccl: ncclGroupEnd did not return within 30 s; the communicator was aborted",
        "gloo: [pair.cc:589] Read error [10.0.0.2]:7047: No route to host"}) {
    EXPECT_FALSE(judge(effect).findings[0].proved) << effect;
  }
  EXPECT_TRUE(own.findings[0].proved);
}

TEST(RankFailed, TheEarlierCollectiveIsNamedOfTwo) {
  const std::string reset = "gloo: Connection reset by peer";
  const auto judge = [&](const History& other) {
    return JudgeAll({After49(0).Does(AllReduce()).FailsIn(AllReduce()).Reports(reset), other});
  };
  const Judgement apart = judge(After49(1).FailsIn(AllReduce()).Reports(reset));
  EXPECT_THAT(apart.findings.at(0).culprits, ElementsAre(0, 1));
  EXPECT_EQ(apart.findings[0].operation->sequence, 49u);
  EXPECT_THAT(apart.findings[0].message, HasSubstr("rank 1 reported an error in all_reduce 50"));
  EXPECT_THAT(apart.findings[0].message, HasSubstr("; rank 0 reported errors too"));
  const Judgement same = judge(After49(1).Does(AllReduce()).FailsIn(AllReduce()).Reports(reset));
  EXPECT_EQ(same.findings.at(0).operation->sequence, 50u);
  EXPECT_THAT(same.findings[0].message, HasSubstr("rank 0 reported an error in all_reduce 51"));
}

// A stream that failed never begins what is queued on it: gradients come in several buckets.
TEST(RankFailed, WhatIsQueuedBehindTheErrorIsNotNamed) {
  const auto fails = [](int rank) {
    return After49(rank).FailsIn(AllReduce()).Queues(AllReduce()).Queues(AllReduce());
  };
  const Judgement judgement =
      JudgeAll({At50(0), fails(1).Reports("injected failure of all_reduce f32 x 256")});
  const Finding& finding = judgement.findings.at(0);
  EXPECT_EQ(finding.cause, Cause::kRankFailed);
  EXPECT_THAT(finding.message, HasSubstr("rank 1 reported an error in all_reduce 50 (sequence 49"));
  EXPECT_THAT(finding.headline.text(), HasSubstr("in all_reduce 50: injected"));
  ASSERT_TRUE(finding.operation);
  EXPECT_EQ(finding.operation->sequence, 49u);
  EXPECT_THAT(judgement.outcomes[1].where, HasSubstr("all_reduce 50"));
  // The earlier of two is found among those that queued more, too.
  const std::string reset = "gloo: Connection reset by peer";
  const Judgement two =
      JudgeAll({After49(0).Does(AllReduce()).FailsIn(AllReduce()).Reports(reset).Leaves(1),
                fails(1).Reports(reset).Leaves(1)});
  EXPECT_EQ(two.findings.at(0).operation->sequence, 49u);
}

// Where a program went on after an error, its end is elsewhere.
TEST(RankFailed, AnErrorThatItGotOverIsNotWhereItIs) {
  const auto over = [] { return After49(1).FailsIn(AllReduce()); };
  const auto where = [](const History& history) {
    return JudgeAll({At50(0), history}).outcomes[1].where;
  };
  EXPECT_THAT(where(over().Does(AllReduce()).Reports("no room")),
              HasSubstr("between two collectives after all_reduce 51"));
  EXPECT_THAT(where(over().Case(2).Enters(AllReduce()).Reports("no room")),
              HasSubstr("all_reduce 51"));
}

TEST(RankFailed, WhoRaisedIsTheCauseOfItsPeersErrors) {
  const History raised = After49(1).Reports("out of memory").Leaves(1);
  const Judgement judgement =
      JudgeAll({After49(0).FailsIn(AllReduce()).Reports("connection closed by peer"), raised});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFailed, Outcome::kFailed));
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 0 failed in a collective because"));
  // It raised while a collective that it had put on a stream was still running.
  const Judgement asynchronous =
      JudgeAll({After49(0).FailsIn(AllReduce()).Reports("connection closed by peer"),
                After49(1).Enters(AllReduce()).Reports("out of memory").Leaves(1)});
  EXPECT_THAT(asynchronous.findings.at(0).culprits, ElementsAre(1));
  // What was queued behind the one that failed never ran.
  const Judgement queued = JudgeAll({After49(0)
                                         .FailsIn(AllReduce())
                                         .Queues(AllReduce())
                                         .Reports("connection closed by peer")
                                         .Leaves(1),
                                     raised});
  EXPECT_THAT(queued.findings.at(0).culprits, ElementsAre(1));
  // Both in the same collective: nobody knows who began.
  const Judgement both = JudgeAll({After49(0).FailsIn(AllReduce()).Reports("broken"),
                                   After49(1).FailsIn(AllReduce()).Reports("broken")});
  EXPECT_THAT(both.findings.at(0).culprits, ElementsAre(0, 1));
  // The one that raised had done its part of what failed elsewhere.
  const Judgement later = JudgeAll({After49(0).FailsIn(AllReduce()).Reports("broken"),
                                    After49(1).Does(AllReduce()).Reports("raised").Leaves(1)});
  EXPECT_THAT(later.findings.at(0).culprits, ElementsAre(0, 1));
}

TEST(RankGone, WhoConnectsWaitsForOneThatNeverConnected) {
  const Judgement judgement =
      JudgeAll({History(0).In(journal::Phase::kConnect), History(1).Signalled(SIGKILL)});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kKilled));
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankKilled);
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 0 waits for it to connect"));
  // It is not said of one that is only slow, nor when the dead one had connected.
  EXPECT_THAT(OutcomesOf(JudgeAll({History(0).In(journal::Phase::kConnect), History(1)})),
              ElementsAre(Outcome::kFinished, Outcome::kFinished));
  EXPECT_THAT(OutcomesOf(JudgeAll(
                  {History(0).In(journal::Phase::kConnect), After49(1).Signalled(SIGKILL)})),
              ElementsAre(Outcome::kFinished, Outcome::kKilled));
}

TEST(RankFailed, AnErrorBecauseOfADeadPeerIsNoCause) {
  const Judgement judgement =
      JudgeAll({After49(0).FailsIn(AllReduce()).Reports("connection closed by peer"),
                At50(1).Signalled(SIGKILL)});
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFailed, Outcome::kKilled));
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankKilled);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

TEST(RankKilled, WhoWaitsIsNamedWithWhomItWaitsFor) {
  const collective::Operation of_1 = {
      .collective = collective::Collective::kBroadcast, .count = 16, .root = 1};
  // Rank 0 waits for rank 1 alone, although rank 2 crashed.
  const Judgement judgement = JudgeAll(
      {After49(0).Enters(of_1), After49(1).Signalled(SIGKILL), After49(2).Signalled(SIGSEGV)});
  ASSERT_EQ(judgement.findings.size(), 2u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankCrashed);
  EXPECT_THAT(judgement.findings[0].message, Not(HasSubstr("waits for it")));
  EXPECT_EQ(judgement.findings[1].cause, Cause::kRankKilled);
  EXPECT_THAT(judgement.findings[1].message, HasSubstr("rank 0 waits for it"));
  // All take part in this one: the first finding says so.
  const Judgement both =
      JudgeAll({At50(0), After49(1).Signalled(SIGKILL), After49(2).Signalled(SIGSEGV)});
  EXPECT_THAT(both.findings.at(0).message, HasSubstr("rank 0 waits for it"));
}

TEST(RankFailed, AnEffectIsNoReason) {
  // Rank 1 was through with connecting and failed, while rank 0 was late in that.
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = "gloo";
  setting.groups = {{1, "a", {0, 1}}};
  const auto connects = [](int rank) { return History(rank).In(journal::Phase::kConnect); };
  const Judgement judgement =
      Judge({connects(0).FailsSplit(1).Reports("gloo: Connection closed by peer").Leaves(1),
             connects(1)
                 .Splits(1)
                 .In(journal::Phase::kMeasure)
                 .On(1)
                 .FailsIn(AllReduce())
                 .Reports("std::bad_alloc")
                 .Leaves(1)},
            setting);
  ASSERT_FALSE(judgement.findings.empty());
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankFailed);
  EXPECT_TRUE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

TEST(RankFailed, WhoOnlyWaitedInVainIsNoCulpritBesideOneThatSaysWhy) {
  const auto fails = [](int rank, const char* error) {
    return After49(rank).FailsIn(AllReduce()).Reports(error).Leaves(1);
  };
  constexpr const char* kWaited = "gloo: Timed out waiting 5000ms for recv operation to complete";
  for (const int why : {0, 1}) {
    const Judgement judgement = JudgeAll({fails(0, why == 0 ? "std::bad_alloc" : kWaited),
                                          fails(1, why == 1 ? "std::bad_alloc" : kWaited)});
    ASSERT_EQ(judgement.findings.size(), 1u);
    EXPECT_TRUE(judgement.findings[0].proved);
    EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(why));
    EXPECT_THAT(judgement.findings[0].message, HasSubstr("bad_alloc"));
  }
}

}  // namespace
}  // namespace lockstep::verdict::finders
