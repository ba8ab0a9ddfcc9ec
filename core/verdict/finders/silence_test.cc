// Silence: where it is suspicious, and where it is not.
#include <signal.h>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TransportStall, NeedsTheDeadline) {
  const Judgement early = JudgeAll({At50(0).Silent(4.9), At50(1).Silent(4.8)});
  EXPECT_THAT(early.findings, IsEmpty());
  EXPECT_EQ(early.verdict, Verdict::kUnknown);
  EXPECT_THAT(OutcomesOf(early), ElementsAre(Outcome::kFinished, Outcome::kFinished));

  const Judgement late = JudgeAll({At50(0).Silent(5.1), At50(1).Silent(4.9)});
  EXPECT_EQ(late.verdict, Verdict::kFail);
  EXPECT_THAT(OutcomesOf(late), ElementsAre(Outcome::kHung, Outcome::kHung));
  ASSERT_EQ(late.findings.size(), 1u);
  EXPECT_EQ(late.findings[0].cause, Cause::kTransportStall);
  EXPECT_FALSE(late.findings[0].proved);
  EXPECT_THAT(late.findings[0].culprits, IsEmpty());
  EXPECT_THAT(late.findings[0].message, HasSubstr("all ranks entered all_reduce 50"));
}

TEST(TransportStall, ARankAsleepAmongTheOthersIsNamed) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6), At50(1).Silent(6).Asleep("S, in pause"), At50(2).Silent(6)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kTransportStall);
  EXPECT_FALSE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("asleep: S, in pause"));
  const Judgement all =
      JudgeAll({At50(0).Silent(6).Asleep("S, in futex"), At50(1).Silent(6).Asleep("S, in futex")});
  EXPECT_THAT(all.findings.at(0).culprits, IsEmpty());
}

TEST(TransportStall, SomeLeftAlready) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6), After49(1).Does(AllReduce()).Enters(AllReduce()).Silent(6)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kTransportStall);
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("1 of 2 did not leave it"));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 1 left it"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung));
}

TEST(RankBusy, TheOneThatDidNotEnterIsNamedWithWhatItDoesInstead) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6),
                After49(1).In(journal::Phase::kCompute).Silent(6.5).Asleep("D, in io_schedule"),
                At50(2).Silent(6)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kRankBusy);
  EXPECT_FALSE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(1));
  EXPECT_THAT(finding.message, HasSubstr("ranks 0 and 2 wait for rank 1 in all_reduce 50"));
  EXPECT_THAT(finding.message, HasSubstr("computing after all_reduce 49"));
  EXPECT_THAT(finding.message, HasSubstr("io_schedule"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung, Outcome::kHung));
}

TEST(RankBusy, ASlowRankThatGoesOnIsNotHung) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6), After49(1).In(journal::Phase::kLoad).Silent(0.2)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankBusy);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kFinished));
  const Judgement early =
      JudgeAll({At50(0).Silent(3), After49(1).In(journal::Phase::kLoad).Silent(3)});
  EXPECT_THAT(early.findings, IsEmpty());
}

TEST(RankBusy, AStreamThatNeverReachesTheCollective) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6), After49(1).Queues(AllReduce()).Silent(6)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("its stream has not reached it"));
}

// The library was not called: no link is to blame, but what stands before the call in its stream.
TEST(RankBusy, StreamsOfAllRanksHaveNotReachedTheCollective) {
  const auto judged = [](double seconds) {
    return JudgeAll({After49(0).Queues(AllReduce()).Silent(seconds),
                     After49(1).Queues(AllReduce()).Silent(seconds)});
  };
  const Judgement judgement = judged(6);
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kRankBusy);
  EXPECT_FALSE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(0, 1));
  EXPECT_THAT(finding.message, HasSubstr("no rank has begun all_reduce 50"));
  EXPECT_THAT(finding.message, HasSubstr("rank 0 has queued it, but its stream has not reached"));
  EXPECT_THAT(judged(4.9).findings, IsEmpty());
}

TEST(RankBusy, SilentWhereNobodyWaits) {
  const Judgement judgement =
      JudgeAll({History(0).Idle(), After49(1).In(journal::Phase::kCheck).Silent(9)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kHung));
}

// Of a communicator whose members are not known nobody can say for whom its ranks wait.
TEST(RankBusy, BeforeThoseThatWaitOnAnUnknownCommunicator) {
  const auto waits = [](int rank) { return After49(rank).On(1).Enters(AllReduce()).Silent(6); };
  const Judgement judgement =
      JudgeAll({waits(0), After49(1).In(journal::Phase::kCompute).Silent(5.5), waits(2)});
  ASSERT_EQ(judgement.findings.size(), 2u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankBusy);
  EXPECT_FALSE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_EQ(judgement.findings[1].cause, Cause::kUnknown);
  EXPECT_THAT(judgement.findings[1].culprits, IsEmpty());
  EXPECT_THAT(judgement.findings[1].message, HasSubstr("ranks 0 and 2 wait in all_reduce 1"));
  // Where all wait there, that is all that is known.
  const Judgement all = JudgeAll({waits(0), waits(1)});
  ASSERT_EQ(all.findings.size(), 1u);
  EXPECT_EQ(all.verdict, Verdict::kUnknown);
  EXPECT_THAT(all.findings[0].culprits, IsEmpty());
}

TEST(Idle, WaitingForOrdersIsNoHang) {
  const Judgement judgement =
      JudgeAll({After49(0).Idle().Silent(1000), After49(1).Idle().Silent(1000)});
  EXPECT_EQ(judgement.verdict, Verdict::kPass);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kFinished));
}

TEST(Idle, ARankThatWasNeverOrderedIsAnHonestUnknown) {
  const Judgement judgement = JudgeAll({At50(0).Silent(6), After49(1).Idle().Silent(6)});
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kUnknown);
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 1 waits for an order"));
}

TEST(Lost, ASilentAgentProvesNothing) {
  const Judgement judgement = JudgeAll({At50(0).Silent(1), At50(1).Silent(1), History(2).Lost()});
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kUnknown);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
  // Nor can a stall be told from a missing rank any more.
  const Judgement late = JudgeAll({At50(0).Silent(6), History(1).Lost()});
  ASSERT_EQ(late.findings.size(), 1u);
  EXPECT_EQ(late.findings[0].cause, Cause::kUnknown);
  EXPECT_EQ(late.outcomes[0].outcome, Outcome::kHung);
  // But who is dead is dead.
  const Judgement dead = JudgeAll({At50(0).Signalled(SIGSEGV), History(1).Lost()});
  EXPECT_EQ(dead.verdict, Verdict::kFail);
  EXPECT_EQ(dead.findings.at(0).cause, Cause::kRankCrashed);
  EXPECT_EQ(dead.findings.at(1).cause, Cause::kUnknown);
}

TEST(InitFailure, NamesWhoDidNotEvenBegin) {
  const Judgement judgement =
      JudgeAll({History(0).In(journal::Phase::kConnect).Silent(6), History(1).Silent(6),
                History(2).In(journal::Phase::kConnect).Silent(6)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kInitFailure);
  EXPECT_FALSE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].remedy, HasSubstr("stacks"));  // no network is asked yet
  const Judgement all = JudgeAll({History(0).In(journal::Phase::kConnect).Silent(6),
                                  History(1).In(journal::Phase::kConnect).Silent(6)});
  EXPECT_THAT(all.findings.at(0).culprits, ElementsAre(0, 1));
  EXPECT_THAT(all.findings[0].remedy, HasSubstr("hosts reach each other"));
  EXPECT_THAT(JudgeAll({History(0).In(journal::Phase::kConnect).Silent(4)}).findings, IsEmpty());
}

TEST(InitFailure, NobodyIsBlamedWhileOneMayCome) {
  const RankEvidence waits = History(0).In(journal::Phase::kConnect).Silent(6);
  EXPECT_THAT(JudgeAll({waits, History(1).Silent(4.9)}).findings, IsEmpty());
  EXPECT_THAT(JudgeAll({waits, History(1).In(journal::Phase::kConnect).Silent(4.9)}).findings,
              IsEmpty());
}

TEST(Silence, OfACallThatAllEnteredTimeWithoutAProcessorIsNone) {
  const auto findings = [](double starved_s) {
    return JudgeAll({At50(0).Silent(6), At50(1).Silent(6).Starved(starved_s)}).findings;
  };
  EXPECT_EQ(findings(0.5).at(0).cause, Cause::kTransportStall);
  EXPECT_TRUE(findings(4).empty());
  const Judgement missing = JudgeAll({At50(0).Silent(6).Starved(4), After49(1).Silent(6)});
  EXPECT_EQ(missing.findings.at(0).cause, Cause::kRankBusy);
  // Who left it need not wait for a processor any more.
  const Judgement left =
      JudgeAll({At50(0).Silent(6).Starved(4), After49(1).Does(AllReduce()).Silent(6)});
  EXPECT_EQ(left.findings.at(0).cause, Cause::kTransportStall);
}

}  // namespace
}  // namespace lockstep::verdict::finders
