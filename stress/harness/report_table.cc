#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/units.h"
#include "core/verdict/trace.h"
#include "stress/harness/report.h"

namespace lockstep {
namespace {

std::string Upper(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kUnknown:
      break;
  }
  return "UNKNOWN";
}

std::int64_t Count(const StressOutcome& outcome, Verdict verdict) {
  return std::count_if(outcome.results.begin(), outcome.results.end(),
                       [&](const CaseResult& result) { return result.verdict == verdict; });
}

// "hung hung", and of many ranks "finished x63, killed": the rarest last.
std::string OutcomesOf(const Judgement& judgement) {
  constexpr std::size_t kMostSingly = 4;
  std::vector<std::pair<std::string_view, int>> counts;
  std::vector<std::string_view> singly;
  for (const RankOutcome& rank : judgement.outcomes) {
    const std::string_view name = NameOf(rank.outcome);
    singly.push_back(name);
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == name; });
    if (known != counts.end()) ++known->second;
    if (known == counts.end()) counts.emplace_back(name, 1);
  }
  if (singly.size() <= kMostSingly) return fmt::format("{}", fmt::join(singly, " "));
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} x{}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

struct Row {
  std::string cells[9];
};
constexpr std::string_view kHead[] = {"scenario", "backend",  "ranks",    "seed",   "outcomes",
                                      "cause",    "culprits", "detected", "verdict"};

Row RowOf(const StressCase& stress_case, const std::string& backend, const CaseResult& result) {
  const auto& findings = result.judgement.findings;
  const auto& detected = result.facts.detected_after_seconds;
  const bool named = !findings.empty();
  return {{stress_case.scenario.name, backend, fmt::format("{}", stress_case.scenario.ranks),
           fmt::format("{}", stress_case.seed), OutcomesOf(result.judgement),
           named ? findings.front().cause : "-",
           named ? fmt::format("{}", fmt::join(findings.front().culprits, ",")) : "-",
           detected ? FormatDuration(*detected * 1e9) : "-", std::string(NameOf(result.verdict))}};
}

std::string Grid(const std::vector<Row>& rows) {
  std::size_t widths[9];
  for (std::size_t i = 0; i < 9; ++i) {
    widths[i] = kHead[i].size();
    for (const Row& row : rows) widths[i] = std::max(widths[i], row.cells[i].size());
  }
  std::string text;
  for (std::size_t i = 0; i < 9; ++i) text += fmt::format("{:<{}}  ", kHead[i], widths[i]);
  text += "\n";
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < 9; ++i) text += fmt::format("{:<{}}  ", row.cells[i], widths[i]);
    text += "\n";
  }
  return text;
}

std::string DetailsOf(const StressCase& stress_case, const std::string& backend,
                      const CaseResult& result) {
  std::string text =
      fmt::format("\n{}: {}: {}\n", Upper(result.verdict), stress_case.label, result.why);
  for (const Finding& finding : result.judgement.findings) {
    text += fmt::format("  {}{}: {}\n  {}\n", finding.cause, finding.proved ? "" : " (suspected)",
                        finding.message, finding.remedy);
  }
  for (const PlannedFault& fault : stress_case.faults) {
    text += fmt::format("  injected: {}\n", Describe(fault));
  }
  const Setting setting =
      SettingOf(stress_case.scenario, backend, std::numeric_limits<double>::infinity());
  return text + FormatTrace(TraceOf(result.facts.evidence, setting, result.judgement));
}

}  // namespace

Verdict VerdictOf(const StressOutcome& outcome) {
  if (Count(outcome, Verdict::kFail) > 0) return Verdict::kFail;
  const bool all = outcome.results.size() == outcome.cases.size();
  return all && Count(outcome, Verdict::kUnknown) == 0 ? Verdict::kPass : Verdict::kUnknown;
}

std::string HeadlineOf(const StressOutcome& outcome) {
  const Verdict verdict = VerdictOf(outcome);
  if (verdict == Verdict::kPass) {
    return fmt::format("PASS: all {} cases came out as they should", outcome.cases.size());
  }
  const auto first =
      std::find_if(outcome.results.begin(), outcome.results.end(),
                   [&](const CaseResult& result) { return result.verdict == verdict; });
  if (first == outcome.results.end()) {
    return fmt::format("UNKNOWN: ended after {} of {} cases", outcome.results.size(),
                       outcome.cases.size());
  }
  const StressCase& worst =
      outcome.cases[static_cast<std::size_t>(first - outcome.results.begin())];
  return fmt::format("{}: {} of {} cases; {}: {}", Upper(verdict), Count(outcome, verdict),
                     outcome.cases.size(), worst.label, first->why);
}

std::string FormatStressTable(const StressOutcome& outcome) {
  std::string text = HeadlineOf(outcome) + "\n\n";
  std::vector<Row> rows;
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    rows.push_back(RowOf(outcome.cases[i], outcome.backend, outcome.results[i]));
  }
  text += Grid(rows);
  if (!outcome.skipped.empty()) {
    text += fmt::format("\nnot for this number of ranks: {}\n", fmt::join(outcome.skipped, ", "));
  }
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    if (outcome.results[i].verdict == Verdict::kPass) continue;
    text += DetailsOf(outcome.cases[i], outcome.backend, outcome.results[i]);
  }
  return text;
}

}  // namespace lockstep
