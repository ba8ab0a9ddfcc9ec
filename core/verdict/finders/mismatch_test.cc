// Different operations in the same position.
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct MismatchRow {
  collective::Operation a;
  collective::Operation b;
  Cause cause;
};

collective::Operation With(collective::Operation operation,
                           void (*change)(collective::Operation&)) {
  change(operation);
  return operation;
}

TEST(Mismatch, EveryDifferenceIsProvedWithoutADeadline) {
  const collective::Operation broadcast = {.collective = collective::Collective::kBroadcast,
                                           .count = 8};
  const MismatchRow rows[] = {
      {AllReduce(1), Barrier(), Cause::kCollectiveMismatch},
      {AllReduce(8), broadcast, Cause::kCollectiveMismatch},
      {AllReduce(8), AllReduce(9), Cause::kCountMismatch},
      {AllReduce(8), AllReduce(8, collective::DataType::kF64), Cause::kTypeMismatch},
      {broadcast, With(broadcast, [](collective::Operation& o) { o.root = 1; }),
       Cause::kRootMismatch},
      {AllReduce(8),
       With(AllReduce(8),
            [](collective::Operation& o) { o.reduction = collective::Reduction::kMax; }),
       Cause::kReductionMismatch},
  };
  for (const MismatchRow& row : rows) {
    const Judgement judgement = JudgeAll({After49(0).Enters(row.a), After49(1).Enters(row.b)});
    ASSERT_EQ(judgement.findings.size(), 1u) << NameOf(row.cause);
    EXPECT_EQ(judgement.findings[0].cause, row.cause);
    EXPECT_TRUE(judgement.findings[0].proved);
    EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0, 1));
    EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung));
  }
}

TEST(Mismatch, WhatDoesNotMatterIsNotCompared) {
  const collective::Operation barrier =
      With(Barrier(), [](collective::Operation& o) { o.count = 7; });
  const collective::Operation max = With(AllReduce(), [](collective::Operation& o) { o.root = 1; });
  EXPECT_THAT(JudgeAll({After49(0).Enters(Barrier()), After49(1).Enters(barrier)}).findings,
              IsEmpty());
  EXPECT_THAT(JudgeAll({After49(0).Enters(AllReduce()), After49(1).Enters(max)}).findings,
              IsEmpty());
  // A send meets a receive.
  EXPECT_THAT(
      JudgeAll({After49(0).Enters({.collective = collective::Collective::kSend, .count = 1}),
                After49(1).Enters({.collective = collective::Collective::kRecv, .count = 1})})
          .findings,
      IsEmpty());
}

TEST(Mismatch, TheMinorityIsTheCulprit) {
  const Judgement judgement =
      JudgeAll({At50(0), At50(1), After49(2).Enters(AllReduce(255)), At50(3)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCountMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
}

TEST(Mismatch, FoundAlsoWhereOneRankWentThroughOrFailed) {
  const Judgement went = JudgeAll({At50(0).Silent(6), After49(1).Does(AllReduce(8)).Silent(1)});
  EXPECT_EQ(went.findings.at(0).cause, Cause::kCountMismatch);
  const Judgement failed =
      JudgeAll({At50(0), After49(1).FailsIn(AllReduce(8)).Reports("message truncated")});
  EXPECT_EQ(failed.findings.at(0).cause, Cause::kCountMismatch);
  EXPECT_THAT(OutcomesOf(failed), ElementsAre(Outcome::kHung, Outcome::kFailed));
}

TEST(Mismatch, TheSameCallForTwoPurposesIsNoDifferentOperation) {
  const History joins = History(0).As(journal::Purpose::kJoinAlive).Does(AllReduce(1));
  const History trains = History(1).As(journal::Purpose::kBarrier).Does(AllReduce(1));
  const Judgement alike = Judge({joins, trains}, {.backend = "gloo"});
  EXPECT_EQ(alike.findings.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(alike.findings[0].message, HasSubstr("the same call, for different purposes"));
  EXPECT_THAT(alike.findings[0].message, Not(HasSubstr("different operations")));
  EXPECT_THAT(alike.findings[0].remedy, HasSubstr("no collectives of your own inside join()"));
  const History waits = History(1).As(journal::Purpose::kBarrier).Enters(Barrier());
  const Judgement differ = Judge({joins, waits}, {.backend = "gloo"});
  EXPECT_THAT(differ.findings.at(0).message, HasSubstr("different operations"));
}

TEST(Mismatch, OtherPositionsCasesAndCommunicatorsProveNothing) {
  // The same sequence number in another case is another communicator's life.
  EXPECT_THAT(
      JudgeAll({History(0).Case(1).Enters(AllReduce(8)), History(1).Case(2).Enters(AllReduce(9))})
          .findings,
      IsEmpty());
  // Who is in communicator 1 is not in the journal: two disjoint groups may both call it 1.
  const auto split = [](int rank, std::int64_t count) {
    return After49(rank).On(1).Enters(AllReduce(count));
  };
  EXPECT_THAT(JudgeAll({split(0, 8), split(1, 9)}).findings, IsEmpty());
  const Judgement late = JudgeAll({split(0, 8).Silent(6), split(1, 9).Silent(6)});
  EXPECT_EQ(late.verdict, Verdict::kUnknown);
  EXPECT_EQ(late.findings.at(0).cause, Cause::kUnknown);
  EXPECT_THAT(OutcomesOf(late), ElementsAre(Outcome::kHung, Outcome::kHung));
}

}  // namespace
}  // namespace lockstep::verdict::finders
