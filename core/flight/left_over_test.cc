// A job was started again within a minute, and a dump of its first attempt is still there.
#include <string>
#include <vector>

#include "core/flight/testing/literal_dumps.h"

namespace lockstep::flight {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verdict::Verdict;

constexpr Call kWaits = {.sequence = 2, .state = "scheduled"};

Rank At(int second, std::vector<Call> calls, int written_s) {
  for (Call& call : calls) call.second = second;
  return {.calls = std::move(calls), .written_s = written_s};
}

verdict::Finding FirstOf(const std::vector<Rank>& ranks) {
  return JudgementOf(ranks).findings.at(0);
}

TEST(LeftOverTest, AFileThatIsOlderThanTheFirstCallOfAnother) {
  const FlightDiagnosis diagnosis = DiagnosisOf(
      {At(40, {{}, {"broadcast", 2}, {"all_reduce", 3}}, 100), At(0, {{}, kWaits}, 19)});
  EXPECT_EQ(diagnosis.judgement.verdict, Verdict::kUnknown);
  EXPECT_THAT(diagnosis.judgement.findings, IsEmpty());
  EXPECT_THAT(diagnosis.notes, Contains(HasSubstr("the dump of rank 1 was written 21 s before "
                                                  "rank 0 made the first call")));
}

// Copies made the files' times newer. Not one call is under way in what is left over.
TEST(LeftOverTest, ARankWhoseCallsAllEndedBeforeTheFirstOfAnother) {
  const Rank now = At(40, {{}, {"broadcast", 2, "[[4]]", "[[4]]", "Float", "scheduled"}}, 100);
  const Rank before = At(0, {{}, {"all_reduce", 2}}, 100);
  EXPECT_FALSE(FirstOf({now, before}).proved);
  EXPECT_THAT(FirstOf({now, before}).message, HasSubstr("the dumps may be of two runs"));
  EXPECT_TRUE(FirstOf({At(0, now.calls, 100), before}).proved);
  // The clocks of two hosts differ: one waits, and its file is as new as the others'.
  EXPECT_TRUE(FirstOf({now, At(0, {{}, kWaits}, 60)}).proved);
}

// Rank 1 ended a call that rank 0 has not made yet.
TEST(LeftOverTest, DumpsOfDifferentMomentsProveNothing) {
  const Rank behind = {.calls = {{}, {"barrier", 2}}};
  EXPECT_FALSE(FirstOf({behind, {.calls = {{}, {"all_reduce", 2}, {"all_reduce", 3}}}}).proved);
  EXPECT_TRUE(FirstOf({behind, {.calls = {{}, {"all_reduce", 2}}}}).proved);
}

// A file of another time than its own calls' says nothing.
TEST(LeftOverTest, AFileThatIsOlderThanItsOwnCalls) {
  EXPECT_TRUE(FirstOf({At(0, {{}, {"barrier", 2}}, -50), At(0, {{}, kWaits}, 100)}).proved);
}

}  // namespace
}  // namespace lockstep::flight
