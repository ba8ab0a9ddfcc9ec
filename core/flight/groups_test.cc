// Calls of several process groups, of which some are asynchronous: who waits, and for whom?
#include <vector>

#include "core/flight/testing/literal_dumps.h"

namespace lockstep::flight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kOther = R"(["1", "ckpt"])";
constexpr const char* kOfOther = R"(, "1": {"name": "1", "desc": "ckpt", "ranks": "[0, 1, 2]"})";

Call Ckpt() {
  Call call = {.name = "barrier", .state = "scheduled"};
  call.group = kOther;
  return call;
}
Call Step(int sequence) { return {.sequence = sequence}; }
Call OpenStep(int sequence) { return {.sequence = sequence, .state = "scheduled"}; }

std::vector<verdict::Finding> FindingsOf(std::vector<std::vector<Call>> of_ranks,
                                         const std::string& backend) {
  std::vector<Rank> ranks;
  for (std::vector<Call>& calls : of_ranks) {
    ranks.push_back({.calls = std::move(calls), .world = "[0, 1, 2]", .groups = kOfOther});
  }
  return JudgementOf(ranks, "2.10", backend).findings;
}

// Ranks 0 and 1 went on with training while the checkpoint was open; rank 2 is late in that.
TEST(GroupsTest, TheRankThatIsLateBesideAnAsynchronousCall) {
  for (const char* backend : {"nccl", "gloo"}) {
    const auto findings = FindingsOf({{Step(1), Ckpt(), Step(2), Step(3), OpenStep(4)},
                                      {Step(1), Ckpt(), Step(2), Step(3)},
                                      {Step(1), Step(2), Step(3), OpenStep(4)}},
                                     backend);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].cause, verdict::Cause::kRankBusy);
    EXPECT_THAT(findings[0].culprits, ElementsAre(1));
    EXPECT_FALSE(findings[0].proved);
    EXPECT_THAT(findings[0].message,
                HasSubstr("ranks 0 and 2 wait for rank 1 in all_reduce Float[4] (call 4 of "
                          "default_pg)"));
  }
}

// Rank 2 called the checkpoint last, and waits for rank 1 in it; rank 0 is in both calls.
TEST(GroupsTest, OppositeOrderBesideAnAsynchronousCall) {
  const auto findings = FindingsOf({{Step(1), Ckpt(), Step(2), Step(3), OpenStep(4)},
                                    {Step(1), Step(2), Step(3), OpenStep(4)},
                                    {Step(1), Step(2), Step(3), Ckpt()}},
                                   "nccl");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cause, verdict::Cause::kOrderInversion);
  EXPECT_THAT(findings[0].culprits, ElementsAre(1, 2));
}

// No call of the training ended after the checkpoint was called, so it may wait behind that.
TEST(GroupsTest, ACallBehindAnOlderOneHasNotBegun) {
  const auto findings = FindingsOf(
      {{Step(1), Ckpt(), OpenStep(2)}, {Step(1), Ckpt(), OpenStep(2)}, {Step(1), OpenStep(2)}},
      "nccl");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cause, verdict::Cause::kOrderInversion);
}

}  // namespace
}  // namespace lockstep::flight
