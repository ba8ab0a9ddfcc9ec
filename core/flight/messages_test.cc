// Sends and receives that wait: who has to answer?
#include <vector>

#include "core/flight/testing/literal_dumps.h"

namespace lockstep::flight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verdict::Cause;
using verdict::Verdict;

Call Message(const char* name, int sequence = 1) {
  return {name, sequence, "[[4]]", "[[4]]", "Float", "scheduled", true};
}
Call EndOfBatch(int sequence = 1) {
  return {"coalesced", sequence, "[]", "[]", "", "scheduled", true};
}

std::vector<Rank> Of(const std::vector<std::vector<Call>>& of_ranks, const char* world,
                     const char* groups = "") {
  std::vector<Rank> ranks;
  for (const std::vector<Call>& calls : of_ranks) {
    ranks.push_back({.calls = {{.sequence = 1}}, .world = world, .groups = groups});
    ranks.back().calls.insert(ranks.back().calls.end(), calls.begin(), calls.end());
  }
  return ranks;
}

TEST(MessagesTest, APartOfABatchIsTheOtherSideOfASend) {
  const auto judge = [](const char* part) {
    return JudgementOf(
        Of({{Message("send 0->1")}, {Message(part), EndOfBatch()}, {}}, "[0, 1, 2]"));
  };
  const verdict::Judgement met = judge("recv 1<-0");
  EXPECT_THAT(met.findings, IsEmpty());
  EXPECT_EQ(met.verdict, Verdict::kUnknown);
  for (const char* other : {"recv 1<-2", "send 1->0"}) {
    const verdict::Judgement missed = judge(other);
    ASSERT_EQ(missed.findings.size(), 1u) << other;
    EXPECT_EQ(missed.findings[0].cause, Cause::kRankBusy);
    EXPECT_THAT(missed.findings[0].culprits, ElementsAre(1));
    EXPECT_THAT(missed.findings[0].message, HasSubstr("it is in coalesced"));
  }
}

// The receive may be among the parts that its ring lost.
TEST(MessagesTest, ABatchThatTheRingLostInPartMayHoldTheOtherSide) {
  std::vector<Rank> ranks = Of({{Message("send 0->1")}, {}}, "[0, 1]");
  ranks[1] = {.calls = {EndOfBatch()}, .lost = 9};
  EXPECT_THAT(JudgementOf(ranks).findings, IsEmpty());
}

}  // namespace
}  // namespace lockstep::flight
