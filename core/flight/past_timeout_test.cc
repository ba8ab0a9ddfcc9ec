// Dumps in which no call is under way any more, and still a rank hangs: PyTorch takes gloo's calls
// from its list at their time-out, and a root ends a broadcast before others come.
#include <string>
#include <vector>

#include "core/flight/testing/literal_dumps.h"

namespace lockstep::flight {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verdict::Verdict;

constexpr Call kAllReduce = {};
constexpr Call kGaveUp = {
    .name = "broadcast", .sequence = 2, .state = "scheduled", .retired = true, .timeout_s = 60};

// DistributedDataParallel broadcasts its buffers; rank 0 has no more inputs.
TEST(PastTimeoutTest, ABroadcastThatGlooGaveUp) {
  const Rank waits = {.calls = {kAllReduce, kGaveUp}}, late = {.calls = {kAllReduce}};
  const verdict::Judgement judgement = JudgementOf({late, waits}, "2.10", "gloo");
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, verdict::Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0));
  EXPECT_FALSE(judgement.findings[0].proved);
}

void ExpectUnknown(const std::vector<Rank>& ranks, const std::string& backend,
                   const std::string& note) {
  const FlightDiagnosis diagnosis = DiagnosisOf(ranks, "2.10", backend);
  EXPECT_EQ(diagnosis.judgement.verdict, Verdict::kUnknown);
  EXPECT_THAT(diagnosis.judgement.findings, IsEmpty());
  EXPECT_THAT(diagnosis.notes, Contains(HasSubstr(note)));
  EXPECT_FALSE(diagnosis.under_way);
}

// It may have been the root of it, and have ended it.
TEST(PastTimeoutTest, ABroadcastThatIsOverBeforeItsTimeout) {
  Call over = kGaveUp;
  over.timeout_s = 1800;
  ExpectUnknown({{.calls = {kAllReduce}}, {.calls = {kAllReduce, over}}}, "gloo",
                "rank 0 has not called broadcast Float[4] (call 2 of default_pg), which is over on "
                "rank 1");
  ExpectUnknown({{.calls = {kAllReduce, {"broadcast", 2}}}, {.calls = {kAllReduce}}}, "nccl",
                "rank 1 has not called broadcast Float[4] (call 2 of default_pg), which is over on "
                "rank 0");
  ExpectUnknown({{.calls = {kAllReduce}}, {}}, "nccl", "rank 1 has not called all_reduce");
}

TEST(PastTimeoutTest, AReceiveThatGlooGaveUp) {
  Call recv = kGaveUp;
  recv.name = "recv 1<-0";
  recv.sequence = 1;
  recv.peer = true;
  const Rank waits = {.calls = {kAllReduce, recv}};
  ExpectUnknown({{.calls = {kAllReduce}}, waits}, "gloo",
                "rank 0 has called fewer sends to rank 1 of default_pg than that has called "
                "receives");
  Call send = recv;
  send.name = "send 0->1";
  EXPECT_EQ(JudgementOf({{.calls = {kAllReduce, send}}, waits}, "2.10", "gloo").verdict,
            Verdict::kPass);
}

// The ring of rank 1 has lost what it called of the other group.
TEST(PastTimeoutTest, AGroupWhoseCallsLeftTheRing) {
  const char* const group = R"(["1", "dp"])";
  const char* const told = R"(, "1": {"name": "1", "desc": "dp", "ranks": "[0, 1]"})";
  Call other = {"broadcast"};
  other.group = group;
  Call late = {"all_reduce", 7};
  EXPECT_EQ(JudgementOf({{.calls = {other, late}, .lost = 6, .groups = told},
                         {.calls = {late}, .lost = 7, .groups = told}})
                .verdict,
            Verdict::kPass);
}

// Threads that call at once record calls the wrong way round.
TEST(PastTimeoutTest, TheNewestCallIsNotTheLastOne) {
  const Call barrier = {"barrier", 2};
  EXPECT_EQ(
      JudgementOf({{.calls = {barrier, kAllReduce}}, {.calls = {kAllReduce, barrier}}}).verdict,
      Verdict::kPass);
}

// Rank 0 is no member of the world that its own dump tells.
TEST(PastTimeoutTest, ACallOfAGroupWithoutItsRank) {
  const Rank foreign = {.calls = {kAllReduce}, .world = "[1]"};
  const Rank member = {.calls = {}, .world = "[1]"};
  EXPECT_THAT(JudgementOf({foreign, member}).findings, IsEmpty());
}

}  // namespace
}  // namespace lockstep::flight
