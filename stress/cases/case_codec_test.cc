// A case goes to a worker as text and comes back whole; text that is cut anywhere is refused.
#include "stress/cases/case_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::stress::cases {
namespace {

using ::testing::ElementsAre;

CaseResult SomeResult() {
  CaseResult result;
  result.verdict = verdict::Verdict::kFail;
  result.why = "it hangs";
  result.judgement.verdict = verdict::Verdict::kFail;
  verdict::RankOutcome& outcome = result.judgement.outcomes.emplace_back();
  outcome.rank = 1;
  outcome.outcome = verdict::Outcome::kHung;
  outcome.where = "all_reduce 5";
  verdict::Finding& finding = result.judgement.findings.emplace_back();
  finding.cause = verdict::Cause::kUnevenInputs;
  finding.culprits = {0, 3};
  finding.operation.emplace().sequence = 12;
  finding.evidence.emplace_back().cause = verdict::Cause::kRankExited;
  result.facts.evidence.emplace_back().journal.events.resize(70);
  result.facts.evidence[0].journal.events.back().sequence = 9;
  result.facts.fired = {true, false};
  result.facts.notes = {"", "why not"};
  result.facts.reports.resize(2);
  result.facts.reports[1].emplace().checked = 7;
  result.facts.recoveries.emplace_back().members = {1, 2};
  result.facts.detected_after_seconds = 0.025;
  result.facts.seconds = 3;
  return result;
}

TEST(CaseCodec, ThereAndBack) {
  const std::optional<ReplicatedCase> back = DecodeCase(EncodeCase(4, SomeResult()));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->index, 4u);
  const CaseResult& result = back->result;
  EXPECT_EQ(result.verdict, verdict::Verdict::kFail);
  EXPECT_EQ(result.why, "it hangs");
  EXPECT_EQ(result.judgement.outcomes.at(0).outcome, verdict::Outcome::kHung);
  EXPECT_EQ(result.judgement.outcomes[0].where, "all_reduce 5");
  const verdict::Finding& finding = result.judgement.findings.at(0);
  EXPECT_THAT(finding.culprits, ElementsAre(0, 3));
  EXPECT_EQ(finding.operation->sequence, 12u);
  EXPECT_EQ(finding.evidence.at(0).cause, verdict::Cause::kRankExited);
  EXPECT_EQ(result.facts.evidence.at(0).journal.events.size(), 64u);
  EXPECT_EQ(result.facts.evidence[0].journal.events.back().sequence, 9u);
  EXPECT_EQ(result.facts.evidence[0].journal.missed, 6u);
  EXPECT_THAT(result.facts.fired, ElementsAre(true, false));
  EXPECT_EQ(result.facts.notes.at(1), "why not");
  EXPECT_FALSE(result.facts.reports.at(0).has_value());
  EXPECT_EQ(result.facts.reports.at(1)->checked, 7);
  EXPECT_THAT(result.facts.recoveries.at(0).members, ElementsAre(1, 2));
  EXPECT_EQ(result.facts.detected_after_seconds, 0.025);
  EXPECT_EQ(result.facts.seconds, 3);
}

TEST(CaseCodec, CutAnywhereItIsRefused) {
  const std::string bytes = EncodeCase(4, SomeResult());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeCase(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
}

// A session replicates it before all cases.
TEST(CaseCodec, TheIdentityOfARunIsNoCase) {
  EXPECT_FALSE(DecodeCase("1a2b3c4d 2026-11-21T10:44:25Z").has_value());
}

}  // namespace
}  // namespace lockstep::stress::cases
