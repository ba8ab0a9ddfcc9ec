// Several communicators: who waits for whom, and when that is for ever.
#include <signal.h>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint16_t kPair = 1, kOther = 2;

Setting Groups(bool one_stream, std::vector<CommunicatorGroup> groups) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.one_stream = one_stream;
  setting.groups = std::move(groups);
  return setting;
}
Setting TwoOfBoth(bool one_stream) {
  return Groups(one_stream, {{kPair, "pair", {0, 1}}, {kOther, "other", {0, 1}}});
}
Judgement JudgeIn(const Setting& setting, const std::vector<RankEvidence>& evidence) {
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}
History In(int rank, std::uint16_t communicator) {
  return History(rank).On(communicator).Enters(AllReduce());
}

TEST(OrderInversion, TwoCommunicatorsInOppositeOrder) {
  const Judgement judgement = JudgeIn(TwoOfBoth(true), {In(0, kPair), In(1, kOther)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kOrderInversion);
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(0, 1));
  EXPECT_THAT(finding.message, HasSubstr("(pair) for rank 1"));
  EXPECT_THAT(finding.message, HasSubstr("(other) for rank 0"));
  EXPECT_THAT(finding.remedy, HasSubstr("same order"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung));
  EXPECT_THAT(judgement.outcomes[0].evidence, HasSubstr("waiting for rank 1, which is in"));
}

TEST(OrderInversion, ThreeRanksInARing) {
  const Setting setting = Groups(true, {{1, "a", {0, 1}}, {2, "b", {1, 2}}, {3, "c", {2, 0}}});
  const Judgement judgement = JudgeIn(setting, {In(0, 1), In(1, 2), In(2, 3)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kOrderInversion);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0, 1, 2));
  // The nearest that is no ring: rank 2 is in nothing, and may come to b.
  const Judgement open =
      JudgeIn(setting, {In(0, 1), In(1, 2), History(2).In(journal::Phase::kLoad)});
  EXPECT_THAT(open.findings, IsEmpty());
  EXPECT_EQ(open.verdict, Verdict::kUnknown);
}

TEST(OrderInversion, TheSameOrderIsNone) {
  // Both are in pair; rank 1 has queued the next one already.
  const std::vector<RankEvidence> same = {In(0, kPair),
                                          In(1, kPair).On(kOther).Queues(AllReduce())};
  EXPECT_THAT(JudgeIn(TwoOfBoth(true), same).findings, IsEmpty());
  // Rank 1 is in what rank 0 entered and left behind it on another stream: no ring.
  const std::vector<RankEvidence> both = {In(0, kPair).On(kOther).Enters(AllReduce()),
                                          In(1, kOther)};
  EXPECT_THAT(JudgeIn(TwoOfBoth(true), both).findings, IsEmpty());
}

TEST(OrderInversion, OnSeveralStreamsOnlyTheDeadlineMakesItASuspicion) {
  const auto at = [](double silent) {
    return std::vector<RankEvidence>{In(0, kPair).Silent(silent), In(1, kOther).Silent(silent)};
  };
  const Judgement early = JudgeIn(TwoOfBoth(false), at(1));
  EXPECT_THAT(early.findings, IsEmpty());
  EXPECT_EQ(early.verdict, Verdict::kUnknown);
  const Judgement late = JudgeIn(TwoOfBoth(false), at(6));
  ASSERT_EQ(late.findings.size(), 1u);
  EXPECT_EQ(late.findings[0].cause, Cause::kOrderInversion);
  EXPECT_FALSE(late.findings[0].proved);
}

TEST(OrderInversion, UndecidableWithoutTheMembers) {
  const Judgement judgement =
      JudgeIn(Groups(true, {}), {In(0, kPair).Silent(6), In(1, kOther).Silent(6)});
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kUnknown);
}

TEST(Groups, AMismatchInsideOneIsProved) {
  const Setting setting = Groups(false, {{kPair, "left", {0, 1}}, {kPair, "right", {2, 3}}});
  const auto at = [](int rank, std::int64_t count) {
    return History(rank).On(kPair).Enters(AllReduce(count));
  };
  // The number is the same, the communicator is not.
  EXPECT_THAT(JudgeIn(setting, {at(0, 8), at(1, 8), at(2, 9), at(3, 9)}).findings, IsEmpty());
  const Judgement judgement = JudgeIn(setting, {at(0, 8), at(1, 8), at(2, 9), at(3, 7)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kCountMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2, 3));
  EXPECT_THAT(OutcomesOf(judgement),
              ElementsAre(Outcome::kFinished, Outcome::kFinished, Outcome::kHung, Outcome::kHung));
}

TEST(Groups, ADeadMemberHoldsThemAndThoseBehindThem) {
  // Rank 2 is dead, rank 1 waits for it in the pair, rank 0 for rank 1 in the world.
  const std::vector<RankEvidence> evidence = {History(0).Enters(AllReduce()), In(1, kPair),
                                              History(2).Does(AllReduce()).Signalled(SIGKILL)};
  const std::vector<CommunicatorGroup> pair = {{kPair, "pair", {1, 2}}};
  const Judgement one = JudgeIn(Groups(true, pair), evidence);
  EXPECT_EQ(one.findings.at(0).cause, Cause::kRankKilled);
  EXPECT_THAT(OutcomesOf(one), ElementsAre(Outcome::kHung, Outcome::kHung, Outcome::kKilled));
  EXPECT_THAT(one.outcomes[0].evidence, HasSubstr("waiting for rank 1, which is in"));
  EXPECT_THAT(one.outcomes[1].evidence, HasSubstr("waiting for rank 2, which was killed"));
  // On several streams rank 1 may still come to the world.
  EXPECT_THAT(OutcomesOf(JudgeIn(Groups(false, pair), evidence)),
              ElementsAre(Outcome::kFinished, Outcome::kHung, Outcome::kKilled));
}

TEST(Groups, SilenceNamesTheMissingMemberOnly) {
  const Setting setting = Groups(true, {{kPair, "pair", {1, 2}}});
  const Judgement judgement =
      JudgeIn(setting, {History(0).Enters(AllReduce()).Silent(7), In(1, kPair).Silent(7),
                        History(2).In(journal::Phase::kLoad).Silent(7)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kRankBusy);
  EXPECT_FALSE(judgement.findings[0].proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
}

TEST(Streams, TheOldestOpenOperationIsTheOneItIsIn) {
  // Queued on a stream: 0 and 1, then the stream begins 0.
  RankEvidence evidence = History(0).Queues(AllReduce(1)).Queues(AllReduce(2));
  journal::JournalEvent start = evidence.journal.events[evidence.journal.events.size() - 2];
  start.kind = journal::EventKind::kStart;
  evidence.journal.events.push_back(start);
  const Judgement judgement = JudgeAll({evidence});
  EXPECT_THAT(judgement.outcomes[0].where, HasSubstr("f32 x 1 "));
}

}  // namespace
}  // namespace lockstep::verdict
