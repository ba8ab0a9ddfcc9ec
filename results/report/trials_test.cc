// Rows of stress fit a terminal, and every case that passed says why.
#include "results/report/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Trials, ATrialThatPassedHasALineOfWhy) {
  store::CaseRecord passed;
  passed.name = "uneven_inputs/case2";
  passed.judgement.verdict = verdict::Verdict::kPass;
  passed.trial.emplace().why = "as expected: rank 0 had inputs for 5\niterations";
  store::CaseRecord failed = passed;
  failed.name = "isolation/kill_init";
  failed.judgement.verdict = verdict::Verdict::kFail;
  const std::vector<std::string> lines = LinesOf(FormatTrials({passed, failed}));
  EXPECT_EQ(lines.back(),
            "uneven_inputs/case2: as expected: rank 0 had inputs for 5\\niterations");
  EXPECT_THAT(FormatTrials({failed}), Not(HasSubstr("as expected")));
}

TEST(Trials, RowsFitATerminal) {
  std::vector<store::CaseRecord> cases(3);
  for (store::CaseRecord& record : cases) {
    record.name = "custom_kernel/event_before_work_launch_blocking";
    record.backend = "gloo";
    record.ranks = 2;
    record.settings = {{"scenario", record.name}, {"seed", "7"}};
    record.judgement.outcomes.resize(2);
    for (auto& rank : record.judgement.outcomes) rank.outcome = verdict::Outcome::kFinished;
    record.judgement.verdict = verdict::Verdict::kPass;
    record.trial.emplace().why =
        "as expected: rank 0 (host vm, pid 4711) had inputs for 5 iterations; rank 1 waits for it";
    record.trial->detected_after_seconds = 0.0123;
    verdict::Finding& finding = record.judgement.findings.emplace_back();
    finding.cause = verdict::Cause::kCollectiveMismatch;
    finding.culprits = {0, 1};
  }
  cases[1].judgement.verdict = verdict::Verdict::kUnknown;
  const std::vector<std::string> lines = LinesOf(FormatTrials(cases));
  EXPECT_EQ(lines[0], "All rows: scenario custom_kernel/*, backend gloo, ranks 2, seed 7");
  for (const std::string& line : lines) EXPECT_LE(line.size(), kNarrow) << line;
  cases[1].judgement.verdict = verdict::Verdict::kPass;
  EXPECT_EQ(LinesOf(FormatTrials(cases))[0],
            "All rows: scenario custom_kernel/*, backend gloo, ranks 2, seed 7, verdict pass");
  cases[1].settings[1].second = "8";
  EXPECT_THAT(
      FormatTrials(cases),
      StartsWith("All rows: scenario custom_kernel/*, backend gloo, ranks 2, verdict pass"));
}

}  // namespace
}  // namespace lockstep::results::report
