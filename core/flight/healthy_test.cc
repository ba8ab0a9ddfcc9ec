// The smallest healthy jobs whose dumps look as if calls did not fit: nobody may be blamed.
#include <algorithm>
#include <string>
#include <vector>

#include "core/flight/testing/literal_dumps.h"

namespace lockstep::flight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verdict::Verdict;

std::vector<std::string> ProvedOf(const verdict::Judgement& judgement) {
  std::vector<std::string> proved;
  for (const verdict::Finding& finding : judgement.findings) {
    if (finding.proved) proved.emplace_back(finding.cause.name());
  }
  return proved;
}

void ExpectWell(const std::vector<Rank>& ranks, const std::string& version = "2.9",
                const std::string& backend = "nccl") {
  const verdict::Judgement judgement = JudgementOf(ranks, version, backend);
  EXPECT_EQ(judgement.verdict, Verdict::kPass);
  for (const verdict::Finding& finding : judgement.findings) ADD_FAILURE() << finding.message;
}

// A library counts elements, and knows no shapes.
TEST(HealthyTest, CoalescedTensorsOfOtherShapes) {
  ExpectWell({{{Part(1, "[[6]]", "[[6]]"), Part(1, "[[8]]", "[[8]]"), End(1)}},
              {{Part(1, "[[2, 3]]", "[[2, 3]]"), Part(1, "[[8]]", "[[8]]"), End(1)}}});
}

// PyTorch reduces to each rank in turn, and only there the output has its own shape.
TEST(HealthyTest, ReduceScatterOfUnevenTensors) {
  const Call end = {"REDUCE_SCATTER_coalesced", 1, "[]", "[]"};
  ExpectWell({{{Part(1, "[[3, 1]]", "[[3]]", "_reduce_oop"),
                Part(1, "[[2, 1]]", "[[2, 1]]", "_reduce_oop"), end}},
              {{Part(1, "[[3, 1]]", "[[3, 1]]", "_reduce_oop"),
                Part(1, "[[2, 1]]", "[[2]]", "_reduce_oop"), end}}});
}

TEST(HealthyTest, CoalescedCallsThatDifferAreProved) {
  for (const char* other : {"[[7]]", "[[5]]"}) {
    EXPECT_THAT(
        ProvedOf(JudgementOf({{{Part(1, "[[6]]", "[[6]]"), Part(1, "[[8]]", "[[8]]"), End(1)}},
                              {{Part(1, other, other), Part(1, "[[8]]", "[[8]]"), End(1)}}})),
        ElementsAre("collective_mismatch"));
  }
}

// Rank 0 also sent messages, so that its ring lost more.
TEST(HealthyTest, ARingThatLostAPartOfACoalescedCall) {
  const std::vector<Call> whole = {Part(7, "[[6]]", "[[6]]"), Part(7, "[[8]]", "[[8]]"), End(7)};
  ExpectWell({{{whole[1], whole[2]}, 40}, {whole, 20}});
  ExpectWell({{{whole[2]}, 40}, {whole, 20}});
}

TEST(HealthyTest, CoalescedCallsBesideAnotherThread) {
  const Call other = {"all_gather", 1,           "[[4]]", "[[8]]",
                      "Float",      "completed", false,   R"(["7", "tensor"])"};
  ExpectWell({{{Part(1, "[[6]]", "[[6]]"), other, Part(1, "[[8]]", "[[8]]"), End(1)}},
              {{Part(1, "[[6]]", "[[6]]"), Part(1, "[[8]]", "[[8]]"), End(1), other}}});
}

// init_process_group again, in the same process.
TEST(HealthyTest, AGroupThatWasMadeAnewAfterFewCalls) {
  for (const char* backend : {"nccl", "gloo"}) {
    const Rank twice = {{{"barrier", 1}, {"all_reduce", 2}, {"broadcast", 1}, {"all_gather", 2}}};
    ExpectWell({twice, twice}, "2.9", backend);
    // Both lives are in one ring, and half of the first in the other.
    const Rank once = {{{"barrier", 1}, {"broadcast", 1}, {"all_gather", 2}}};
    const Rank lost = {{{"broadcast", 1}, {"all_gather", 2}}, 1};
    ExpectWell({once, lost}, "2.9", backend);
  }
}

// Rank 1 is not yet there: what it called belongs to the group's earlier life.
TEST(HealthyTest, AGroupThatOneRankHasNotYetMadeAnew) {
  Rank early = {{{"broadcast", 1}, {"barrier", 2}, {"barrier", 3}, {"all_reduce", 1}}};
  early.calls.back().state = "scheduled";
  const verdict::Judgement judgement =
      JudgementOf({early, {{{"broadcast", 1}, {"barrier", 2}, {"barrier", 3}}}});
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// MoE: the rank that has nothing to exchange has an empty tensor of some type.
TEST(HealthyTest, EmptyTensorsOfAnotherType) {
  ExpectWell({{{{"all_to_all", 1, "[[4]]", "[[4]]", "Half"}}},
              {{{"all_to_all", 1, "[[0]]", "[[0]]", "Float"}}}});
}

// PyTorch has NCCL record what a rank receives as its input, and what the root gives as its output:
// an undefined tensor on the others.
TEST(HealthyTest, NcclRecordsAScatterTheOtherWayRound) {
  const auto root = [](const char* received) { return Call{"scatter", 1, received, "[[4], [4]]"}; };
  const auto other = [](const char* received) { return Call{"scatter", 1, received, "[[0]]"}; };
  for (const char* version : {"2.2", "2.9"}) {
    ExpectWell({{{root("[[4]]")}}, {{other("[[4]]")}}}, version);
    EXPECT_THAT(ProvedOf(JudgementOf({{{root("[[4]]")}}, {{other("[[5]]")}}}, version)),
                ElementsAre("count_mismatch"));
  }
}

// It may be that these ranks exchange nothing: a dump holds no splits.
TEST(HealthyTest, TypesOfAnAllToAllAreNoProof) {
  const verdict::Judgement judgement =
      JudgementOf({{{{"all_to_all", 1, "[[4]]", "[[4]]", "Half"}}},
                   {{{"all_to_all", 1, "[[4]]", "[[4]]", "Float"}}}});
  EXPECT_THAT(ProvedOf(judgement), IsEmpty());
  EXPECT_EQ(judgement.findings.at(0).cause, verdict::Cause::kTypeMismatch);
}

// PyTorch 2.4 counts a batch of sends as a collective, of the ranks that make it
// (pytorch/pytorch#135132). TorchComms counts the collectives of all groups together.
TEST(HealthyTest, NumbersThatRanksCountDifferently) {
  const std::vector<Call> others = {{"all_reduce", 1}, {"barrier", 2}, {"all_reduce", 3}};
  for (const char* version : {"2.3", "2.9"}) {
    ExpectWell({{{{"all_reduce", 1},
                  Send(0),
                  {"coalesced", 0, "[]", "[]", "", "completed", true},
                  {"barrier", 3},
                  {"all_reduce", 4}}},
                {others}},
               version);
  }
  // Before 2.3 an entry does not say that it is a message.
  ExpectWell({{{{"all_reduce", 1}, Send(0), End(2), {"barrier", 3}, {"all_reduce", 4}}}, {others}},
             "2.2");
}

// In format 2.3 the batch may have left the ring.
TEST(HealthyTest, NumbersOfAnOldFormatProveNothingWhereTheRingLostCalls) {
  const std::vector<Rank> ranks = {{{{"barrier", 7}, {"all_reduce", 8}}, 9},
                                   {{{"all_reduce", 7}, {"barrier", 8}}, 7}};
  EXPECT_THAT(ProvedOf(JudgementOf(ranks, "2.3")), IsEmpty());
  EXPECT_THAT(ProvedOf(JudgementOf(ranks, "2.9")), ElementsAre("collective_mismatch"));
}

// Without its ranks nobody knows whether it is one group, or two of one name.
TEST(HealthyTest, GroupsOfOneNameThatNobodyTells) {
  const auto call = [](const char* name) {
    return Call{name, 1, "[[4]]", "[[4]]", "Float", "completed", false, R"(["tp", ""])"};
  };
  ExpectWell({{{call("all_reduce")}}, {{call("barrier")}}});
  EXPECT_THAT(ProvedOf(JudgementOf({{{call("all_reduce")}}, {{call("barrier")}}}, "2.9", "gloo")),
              ElementsAre("collective_mismatch"))
      << "gloo's groups have names of their own";
}

// NCCL has taken the first send, and the receives wait behind another call.
TEST(HealthyTest, ASendMayMeetALaterReceive) {
  const auto message = [](const char* name, int sequence, const char* size, const char* state) {
    return Call{name, sequence, size, size, "Float", state, true};
  };
  const Call waits = {"all_reduce", 1, "[[4]]", "[[4]]", "Float", "scheduled"};
  const auto blames_sizes = [&](const char* second) {
    const verdict::Judgement judgement =
        JudgementOf({{{message("send 0->1", 1, "[[4]]", "completed"),
                       message("send 0->1", 2, "[[8]]", "scheduled")}},
                     {{waits, message("recv 1<-0", 1, "[[4]]", "scheduled"),
                       message("recv 1<-0", 2, second, "scheduled")}}});
    return std::ranges::any_of(judgement.findings, [](const verdict::Finding& finding) {
      return finding.cause == verdict::Cause::kCountMismatch;
    });
  };
  EXPECT_FALSE(blames_sizes("[[8]]"));
  EXPECT_TRUE(blames_sizes("[[9]]"));
}

// Rank 1 of a job of two ranks left no dump, and that of an earlier job of four is still there.
TEST(HealthyTest, ADumpOfAJobOfAnotherSize) {
  const Call waits = {"all_reduce", 1, "[[4]]", "[[4]]", "Float", "scheduled"};
  const Call other = {"barrier", 1, "[]", "[]", "", "scheduled"};
  for (const Call& left_over : {waits, other}) {
    const verdict::Judgement judgement = JudgementOf({{{waits}}, {{left_over}, 0, "[0, 1, 2, 3]"}});
    EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
    EXPECT_THAT(judgement.findings, IsEmpty());
  }
}

}  // namespace
}  // namespace lockstep::flight
