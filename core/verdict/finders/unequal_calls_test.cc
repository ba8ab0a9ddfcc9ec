// Ranks that ended in order, with more calls on one than on another.
#include <utility>
#include <vector>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const collective::Operation kBroadcast = {.collective = collective::Collective::kBroadcast,
                                          .count = 4};
const collective::Operation kReduce = {.collective = collective::Collective::kReduce, .count = 4};

Judgement JudgeInOrder(const std::vector<RankEvidence>& evidence,
                       std::vector<CommunicatorGroup> groups = {}) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = "mpi";
  setting.one_stream = true;
  setting.groups = std::move(groups);
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}

History Calls(int rank, const collective::Operation& operation, int times) {
  return History(rank).Does(AllReduce()).Does(operation, times).Leaves(0);
}

TEST(Unequal, WhoMadeAnotherNumberOfCallsThanMostIsWrong) {
  const Judgement fewer =
      JudgeInOrder({Calls(0, kBroadcast, 2), Calls(1, kBroadcast, 1), Calls(2, kBroadcast, 2)});
  ASSERT_EQ(fewer.findings.size(), 1u);
  EXPECT_EQ(fewer.verdict, Verdict::kFail);
  EXPECT_EQ(fewer.findings[0].cause, Cause::kCollectiveMismatch);
  EXPECT_TRUE(fewer.findings[0].proved);
  EXPECT_THAT(fewer.findings[0].culprits, ElementsAre(1));
  EXPECT_EQ(fewer.findings[0].headline.text(),
            "rank 1 made 2 collective calls on world, ranks 0 and 2 made 3");
  ASSERT_TRUE(fewer.findings[0].operation);
  EXPECT_EQ(fewer.findings[0].operation->sequence, 2u);
  EXPECT_THAT(OutcomesOf(fewer),
              ElementsAre(Outcome::kFinished, Outcome::kFinished, Outcome::kFinished));
  const Judgement more =
      JudgeInOrder({Calls(0, kReduce, 0), Calls(1, kReduce, 1), Calls(2, kReduce, 0)});
  EXPECT_THAT(more.findings.at(0).culprits, ElementsAre(1));
  // Of two nobody can say.
  const Judgement two = JudgeInOrder({Calls(0, kBroadcast, 3), Calls(1, kBroadcast, 2)});
  EXPECT_THAT(two.findings.at(0).culprits, ElementsAre(0, 1));
  // As many.
  const Judgement equal = JudgeInOrder({Calls(0, kBroadcast, 2), Calls(1, kBroadcast, 2)});
  EXPECT_THAT(equal.findings, IsEmpty());
  EXPECT_EQ(equal.verdict, Verdict::kPass);
}

TEST(Unequal, NothingIsSaidBeforeItIsCertain) {
  const RankEvidence two = Calls(0, kBroadcast, 2);
  // The ring lost events; it still runs; it waits for an order; its call failed, and it went on.
  EXPECT_THAT(JudgeInOrder({two, Calls(1, kBroadcast, 1).Missed(1)}).findings, IsEmpty());
  EXPECT_THAT(JudgeInOrder({two, History(1).Does(AllReduce()).Does(kBroadcast)}).findings,
              IsEmpty());
  EXPECT_THAT(JudgeInOrder({two, History(1).Does(AllReduce()).Does(kBroadcast).Idle()}).findings,
              IsEmpty());
  EXPECT_THAT(
      JudgeInOrder({Calls(0, kBroadcast, 1),
                    History(1).Does(AllReduce()).FailsIn(kBroadcast).Does(kBroadcast).Leaves(0)})
          .findings,
      IsEmpty());
  // So did one on another communicator.
  const RankEvidence gave_up =
      History(1).Does(AllReduce()).On(1).FailsIn(kBroadcast).On(0).Does(kBroadcast).Leaves(0);
  EXPECT_THAT(JudgeInOrder({two, gave_up}, {{1, "pair", {0, 1}}}).findings, IsEmpty());
  // Nobody knows whose communicator it is.
  EXPECT_THAT(
      JudgeInOrder({History(0).On(1).Does(kBroadcast, 2).Leaves(0), History(1).Leaves(0)}).findings,
      IsEmpty());
}

TEST(Unequal, ACommunicatorOfSomeRanksCountsForItself) {
  const auto member = [](int rank, int times) {
    return History(rank).Does(AllReduce()).On(1).Does(kBroadcast, times).Leaves(0);
  };
  const std::vector<CommunicatorGroup> pair = {{1, "pair", {0, 1}}};
  const RankEvidence other = History(2).Does(AllReduce()).Leaves(0);
  EXPECT_THAT(JudgeInOrder({member(0, 2), member(1, 2), other}, pair).findings, IsEmpty());
  const Judgement judgement = JudgeInOrder({member(0, 1), member(1, 0), other}, pair);
  EXPECT_THAT(judgement.findings.at(0).culprits, ElementsAre(0, 1)) << "rank 2 is no member";
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("on pair (communicator 1)"));
}

TEST(Unequal, ExplainsWrongDataOfAMemberOnly) {
  const History skips = Calls(1, kBroadcast, 1).WrongData("broadcast: 16 of 16");
  const Judgement judgement =
      JudgeInOrder({Calls(0, kBroadcast, 2), skips, Calls(2, kBroadcast, 2)});
  ASSERT_EQ(judgement.findings.size(), 2u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_EQ(judgement.findings[1].cause, Cause::kDataCorruption);
  // Who is on none of the communicator has wrong data for another reason.
  const auto member = [](int rank, int times) {
    return History(rank).Does(AllReduce()).On(1).Does(kBroadcast, times).Leaves(0);
  };
  const Judgement other = JudgeInOrder(
      {member(0, 1), member(1, 0), History(2).Does(AllReduce()).Leaves(0).WrongData("all_reduce")},
      {{1, "pair", {0, 1}}});
  ASSERT_EQ(other.findings.size(), 2u);
  EXPECT_EQ(other.findings[0].cause, Cause::kDataCorruption);
  EXPECT_EQ(other.findings[1].cause, Cause::kCollectiveMismatch);
  // All calls are equal: it is no mistake of the program.
  const Judgement equal = JudgeInOrder({Calls(0, kBroadcast, 1), skips, Calls(2, kBroadcast, 1)});
  ASSERT_EQ(equal.findings.size(), 1u);
  EXPECT_EQ(equal.findings[0].cause, Cause::kDataCorruption);
}

}  // namespace
}  // namespace lockstep::verdict::finders
