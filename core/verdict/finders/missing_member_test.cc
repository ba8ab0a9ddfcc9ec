// Communicators that are not made by all ranks, and connections that fail.
#include <signal.h>

#include "core/verdict/judge.h"
#include "core/verdict/testing/history.h"
#include "core/verdict/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint16_t kA = 1;

Setting Making(bool one_stream = true) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.one_stream = one_stream;
  setting.groups = {{1, "a", {0, 1}}, {2, "b", {0, 1}}};
  return setting;
}

Judgement JudgeIn(const Setting& setting, const std::vector<RankEvidence>& evidence) {
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}

History MadeA(int rank) { return History(rank).In(journal::Phase::kConnect).Splits(kA); }
// Went on without b.
History InA(int rank) {
  return MadeA(rank).In(journal::Phase::kMeasure).On(kA).Enters(AllReduce());
}

TEST(Making, WhoDoesNotTakePartIsTheCulprit) {
  const std::vector<RankEvidence> evidence = {MadeA(0).EntersSplit(2), InA(1)};
  const Judgement judgement = JudgeIn(Making(), evidence);
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kInitFailure);
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(1));
  EXPECT_THAT(finding.message, HasSubstr("rank 0 waits in the making of communicator 2 (split 1 of "
                                         "communicator 0) 'b', in which rank 1 did not take part: "
                                         "rank 1 is in all_reduce 1"));
  ASSERT_EQ(finding.evidence.size(), 1u);
  EXPECT_EQ(finding.evidence[0].cause, Cause::kOrderInversion);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung));
  EXPECT_TRUE(NobodyCanGoOn(evidence, judgement));
  const Trace trace = TraceOf(evidence, Making(), judgement);
  ASSERT_EQ(trace.rows.size(), 2u);
  EXPECT_EQ(trace.rows[0].cells[1].state, CallState::kDone);
  EXPECT_TRUE(trace.rows[1].in_question);
  EXPECT_EQ(trace.rows[1].cells[0].call, "split: communicator 2");
  EXPECT_EQ(trace.rows[1].cells[0].state, CallState::kWaits);
  EXPECT_THAT(trace.rows[1].cells[1].call, HasSubstr("(all_reduce 1"));
}

TEST(Making, TheNearestThatIsNone) {
  // Rank 1 computes: it may come to b.
  const auto late = [](double silent) {
    return std::vector<RankEvidence>{MadeA(0).EntersSplit(2).Silent(silent),
                                     MadeA(1).In(journal::Phase::kCompute).Silent(silent)};
  };
  const Judgement early = JudgeIn(Making(), late(1));
  EXPECT_THAT(early.findings, IsEmpty());
  EXPECT_EQ(early.verdict, Verdict::kUnknown);
  // From silence alone: it is busy.
  const Judgement silent = JudgeIn(Making(), late(6));
  EXPECT_EQ(silent.findings.at(0).cause, Cause::kRankBusy);
  EXPECT_FALSE(silent.findings[0].proved);
  EXPECT_THAT(silent.findings[0].culprits, ElementsAre(1));
  // All are in it: nobody is missing.
  const std::vector<RankEvidence> all = {MadeA(0).EntersSplit(2), MadeA(1).EntersSplit(2)};
  EXPECT_THAT(JudgeIn(Making(), all).findings, IsEmpty());
  // Rank 1 took part in it as no member, and left; rank 0 waits for it in a, and may be next.
  const std::vector<RankEvidence> left = {InA(0), MadeA(1).Splits(2, -1)};
  EXPECT_THAT(JudgeIn(Making(), left).findings, IsEmpty());
}

TEST(Making, OnSeveralStreamsOnlyTheDeadlineMakesItASuspicion) {
  const auto at = [](double silent) {
    return std::vector<RankEvidence>{MadeA(0).EntersSplit(2).Silent(silent), InA(1).Silent(silent)};
  };
  EXPECT_THAT(JudgeIn(Making(false), at(1)).findings, IsEmpty());
  const Judgement late = JudgeIn(Making(false), at(6));
  EXPECT_EQ(late.findings.at(0).cause, Cause::kInitFailure);
  EXPECT_FALSE(late.findings[0].proved);
  EXPECT_THAT(late.findings[0].culprits, ElementsAre(1));
}

TEST(Making, UndecidableWhenTheRingLostWhetherItTookPart) {
  const Judgement judgement =
      JudgeIn(Making(), {MadeA(0).EntersSplit(2).Silent(1),
                         History(1).On(kA).Enters(AllReduce()).Missed(100).Silent(1)});
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
}

TEST(Making, WhoEndedItsProgramWithoutIt) {
  const Judgement judgement = JudgeIn(Making(), {MadeA(0).EntersSplit(2), MadeA(1).Leaves(0)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kInitFailure);
  EXPECT_TRUE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 1 exited with code 0"));
  EXPECT_EQ(judgement.findings[0].evidence.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kFinished));
  // One that died explains more than that.
  const Judgement dead = JudgeIn(Making(), {MadeA(0).EntersSplit(2), MadeA(1).Signalled(SIGKILL)});
  EXPECT_EQ(dead.findings.at(0).cause, Cause::kRankKilled);
  EXPECT_THAT(dead.findings[0].message, HasSubstr("rank 0 waits for it in the making of"));
  EXPECT_FALSE(dead.findings[0].operation.has_value());
  EXPECT_THAT(OutcomesOf(dead), ElementsAre(Outcome::kHung, Outcome::kKilled));
}

TEST(Making, OneThatMostDoNotMakeIsOneTooMany) {
  const std::vector<RankEvidence> evidence = {History(0).Splits(kA).EntersSplit(2),
                                              History(1).Splits(kA).On(kA).Enters(AllReduce()),
                                              History(2).Splits(kA).On(kA).Enters(AllReduce())};
  Setting setting = Making();
  setting.groups = {{kA, "a", {0, 1, 2}}};
  const Judgement judgement = JudgeIn(setting, evidence);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kInitFailure);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0));
  // So it is when they have ended their program without it.
  const Judgement over =
      JudgeIn(setting, {History(0).Splits(kA).EntersSplit(2), History(1).Splits(kA).Leaves(0),
                        History(2).Splits(kA).Leaves(0)});
  EXPECT_EQ(over.findings.at(0).cause, Cause::kInitFailure);
  EXPECT_THAT(over.findings[0].culprits, ElementsAre(0));
  EXPECT_THAT(OutcomesOf(over),
              ElementsAre(Outcome::kHung, Outcome::kFinished, Outcome::kFinished));
}

TEST(Connecting, AnErrorIsAnInitFailureOfWhoReportsIt) {
  const auto connects = [](int rank) { return History(rank).In(journal::Phase::kConnect); };
  const std::string error = "gloo: can't listen on nosuch0: Unable to find interface";
  const Judgement judgement = JudgeAll({connects(0), connects(1).Reports(error).Leaves(1)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kInitFailure);
  EXPECT_TRUE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 1 could not connect: gloo: can't"));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 0 waits for it to connect"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kFailed));
  // Its program raised before: that is no matter of connecting.
  const Judgement raised = JudgeAll({connects(0), History(1).Reports("ValueError").Leaves(1)});
  EXPECT_EQ(raised.findings.at(0).cause, Cause::kRankFailed);
  // Nor is what comes once it is connected.
  const Judgement later =
      JudgeAll({After49(0).FailsIn(AllReduce()).Reports("short read"), After49(1)});
  EXPECT_EQ(later.findings.at(0).cause, Cause::kRankFailed);
  // Who could not connect because another raised is no culprit.
  const Judgement because =
      JudgeAll({connects(0).Reports("gloo: rank 0 of 2 can't connect: Timed out").Leaves(1),
                History(1).Reports("ValueError").Leaves(1)});
  EXPECT_EQ(because.findings.at(0).cause, Cause::kRankFailed);
  EXPECT_THAT(because.findings[0].culprits, ElementsAre(1));
}

TEST(Connecting, WhoDidNotComeIsNamed) {
  for (const char* words : {"'world/1' did not come in time",
                            "gloo: rank 0 of 3 can't connect: Connect timeout [10.0.0.2]:7047"}) {
    const auto in_vain = [&](int rank) {
      return History(rank).In(journal::Phase::kConnect).Reports(words).Leaves(1);
    };
    const Judgement judgement = JudgeAll({in_vain(0), History(1), in_vain(2)});
    EXPECT_EQ(judgement.findings.at(0).cause, Cause::kInitFailure);
    EXPECT_FALSE(judgement.findings[0].proved) << words;
    EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
    EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 1 did not begin to connect"));
    // All had begun: nobody can say whose fault it is.
    const Judgement all = JudgeAll({in_vain(0), in_vain(1)});
    EXPECT_THAT(all.findings.at(0).culprits, ElementsAre(0, 1));
    EXPECT_FALSE(all.findings[0].proved) << words;
  }
}

TEST(Connecting, AlsoOfAnotherCommunicator) {
  const std::vector<RankEvidence> evidence = {
      MadeA(0).EntersSplit(2),
      MadeA(1).FailsSplit(2).Reports("gloo: Too many open files").Leaves(1)};
  const Judgement judgement = JudgeIn(Making(), evidence);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kInitFailure);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("could not connect in the making of"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kFailed));
}

TEST(Making, WhoMayYetComeIsNoVoter) {
  Setting setting = Making();
  setting.groups = {{kA, "a", {0, 1, 2}}};
  const std::vector<RankEvidence> evidence = {
      History(0).Splits(kA).EntersSplit(2).Silent(6), History(1).Splits(kA).Leaves(0),
      History(2).Splits(kA).In(journal::Phase::kCompute).Silent(6)};
  const Judgement judgement = JudgeIn(setting, evidence);
  ASSERT_FALSE(judgement.findings.empty());
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::verdict::finders
