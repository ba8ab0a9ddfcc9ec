// Sends and receives that wait: who has to answer?
#include <fmt/ranges.h>

#include <string>
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

Call Collective(const char* group) {
  return {.name = "all_reduce", .state = "scheduled", .group = group};
}

std::vector<std::string> Suspects(const verdict::Judgement& judgement) {
  std::vector<std::string> suspects;
  for (const verdict::Finding& finding : judgement.findings) {
    suspects.push_back(
        fmt::format("{} {}", finding.cause.name(), fmt::join(finding.culprits, ",")));
  }
  return suspects;
}

// Two pipelines, {0, 1} and {2, 3}, whose stages reduce in {0, 2} and {1, 3}. Rank 2 loads data.
TEST(MessagesTest, AtTheEndOfAChainThroughACollectiveIsTheRankThatIsBusy) {
  constexpr const char* kGroups =
      R"(, "1": {"name": "1", "desc": "pp0", "ranks": "[0, 1]"},
         "2": {"name": "2", "desc": "pp1", "ranks": "[2, 3]"},
         "4": {"name": "4", "desc": "dp1", "ranks": "[1, 3]"})";
  Call activation = Message("recv 1<-0"), next = Message("send 0->1");
  activation.group = R"(["2", "pp1"])";
  next.group = R"(["1", "pp0"])";
  const std::vector<Call> reduces = {Collective(R"(["4", "dp1"])")};
  for (const std::vector<Call>& first : {std::vector<Call>{}, std::vector<Call>{next}}) {
    const verdict::Judgement judgement =
        JudgementOf(Of({first, reduces, {}, {activation}}, "[0, 1, 2, 3]", kGroups));
    EXPECT_THAT(Suspects(judgement), ElementsAre("rank_busy 2", "unknown 3"));
    EXPECT_EQ(judgement.findings[0].headline.text(),
              "rank 2 does not answer recv; rank 3 waits for it");
  }
}

constexpr const char* kPair = R"(, "1": {"name": "1", "desc": "dp", "ranks": "[1, 2]"})";
constexpr const char* kOfPair = R"(["1", "dp"])";

TEST(MessagesTest, WhoWaitsInACollectiveIsNotSuspectedOfNotAnswering) {
  const Call pair = Collective(kOfPair);
  const auto suspects = [&](const std::vector<Call>& of_2) {
    return Suspects(JudgementOf(Of({{Message("send 0->1")}, {pair}, of_2}, "[0, 1, 2]", kPair)));
  };
  EXPECT_THAT(suspects({}), ElementsAre("rank_busy 2"));
  EXPECT_THAT(suspects({pair}), ElementsAre("transport_stall "));
  // It waits for rank 0: a ring, through the collective.
  EXPECT_THAT(suspects({Message("recv 2<-0")}), ElementsAre("order_inversion 0,1,2", "unknown 2"));
}

// Rank 3 left no dump, and may be whom all wait for.
TEST(MessagesTest, AMemberWithoutADumpMakesNoRing) {
  constexpr const char* kThree = R"(, "1": {"name": "1", "desc": "dp", "ranks": "[1, 2, 3]"})";
  const verdict::Judgement judgement =
      JudgementOf(Of({{Message("send 0->1")}, {Collective(kOfPair)}, {Message("recv 2<-0")}},
                     "[0, 1, 2, 3]", kThree));
  EXPECT_THAT(Suspects(judgement), ElementsAre("unknown 2", "unknown 3"));
}

// It called it long before what it does now, and need not wait for it.
TEST(MessagesTest, WhoIsInAnAsynchronousCollectiveHasToAnswer) {
  const auto judge = [](const std::vector<Call>& of_1) {
    return Suspects(JudgementOf(Of(
        {{{.sequence = 2}, Message("send 0->1")}, of_1, {{.sequence = 2}}}, "[0, 1, 2]", kPair)));
  };
  const Call pair = Collective(kOfPair), step = {.sequence = 2};
  EXPECT_THAT(judge({step, pair}), ElementsAre("rank_busy 2"));
  EXPECT_THAT(judge({pair, step}), ElementsAre("rank_busy 2", "rank_busy 1"));
}

}  // namespace
}  // namespace lockstep::flight
