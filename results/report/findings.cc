#include "results/report/findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "results/report/figures.h"
#include "results/report/report.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostWrong = 8;

const Finding* FirstFinding(const Run& run) {
  if (!run.judgement.findings.empty()) return &run.judgement.findings.front();
  for (const CaseRecord& record : run.cases) {
    if (!record.judgement.findings.empty()) return &record.judgement.findings.front();
  }
  return nullptr;
}

std::int64_t WrongElements(const Run& run) {
  std::int64_t wrong = 0;
  for (const CaseRecord& record : run.cases) wrong += record.summary.wrong_elements;
  return wrong;
}

std::string MadeHeadline(const Run& run) {
  if (const Finding* finding = FirstFinding(run)) {
    const std::string remedy = finding->remedy.empty() ? "" : "; " + finding->remedy;
    return finding->message + remedy;
  }
  if (const std::int64_t wrong = WrongElements(run); wrong > 0) {
    return fmt::format("{} wrong elements; do not train on this machine until it is understood",
                       wrong);
  }
  return fmt::format("{} cases", run.cases.size());
}

// A finding of the launch is often a finding of the case it broke, too; it is shown once.
class FindingList {
 public:
  void Add(const Judgement& judgement, const std::string& where) {
    for (const Finding& finding : judgement.findings) {
      if (!seen_.insert(finding.cause + finding.message).second) continue;
      text_ += fmt::format("  {}. {} ({}, {}{}): {}\n", seen_.size(), finding.cause,
                           finding.proved ? "proved" : "suspected", RanksText(finding.culprits),
                           where, OneLine(finding.message));
      if (!finding.remedy.empty()) text_ += "     -> " + OneLine(finding.remedy) + "\n";
    }
  }
  std::string text() const { return text_.empty() ? "" : "\nFindings\n" + text_; }

 private:
  std::set<std::string> seen_;
  std::string text_;
};

std::string RankLine(const RankOutcome& outcome) {
  std::string line = fmt::format("  rank {}: {}", outcome.rank, NameOf(outcome.outcome));
  if (outcome.exit_code != 0) line += fmt::format(", exit code {}", outcome.exit_code);
  if (outcome.signal != 0) line += fmt::format(", signal {}", outcome.signal);
  if (!outcome.where.empty()) line += ", at " + OneLine(outcome.where);
  if (outcome.seconds_silent > 0) line += fmt::format(", silent {:.1f} s", outcome.seconds_silent);
  const std::string evidence = outcome.evidence.substr(0, outcome.evidence.find('\n'));
  if (!evidence.empty()) line += " [" + OneLine(evidence) + "]";
  return line + "\n";
}

std::string RankLines(const Run& run) {
  std::string text;
  for (const RankOutcome& outcome : run.judgement.outcomes) {
    if (outcome.outcome != Outcome::kFinished) text += RankLine(outcome);
  }
  return text.empty() ? "" : "\nRanks that did not finish\n" + text;
}

std::string WrongLines(const Run& run) {
  std::string text;
  std::size_t shown = 0;
  for (const CaseRecord& record : run.cases) {
    for (const WrongResult& wrong : record.wrong) {
      if (++shown > kMostWrong) continue;
      text += fmt::format(
          "  {}: rank {}, iteration {}, operation {}, element {}: expected {}, "
          "got {}\n",
          record.name, wrong.rank, wrong.iteration, wrong.operation, wrong.element, wrong.expected,
          wrong.got);
    }
  }
  const std::int64_t all = WrongElements(run);
  if (all == 0 && shown == 0) return "";
  return fmt::format("\nWrong results: {} elements, the first of them\n{}", all, text);
}

// A culprit's outcome, or else the first that is not `finished`; nullptr when all finished.
const RankOutcome* WorstOutcome(const Judgement& judgement) {
  const RankOutcome* worst = nullptr;
  for (const RankOutcome& outcome : judgement.outcomes) {
    if (outcome.outcome == Outcome::kFinished) continue;
    if (worst == nullptr) worst = &outcome;
    for (const Finding& finding : judgement.findings) {
      const auto& culprits = finding.culprits;
      if (std::find(culprits.begin(), culprits.end(), outcome.rank) != culprits.end()) {
        return &outcome;
      }
    }
  }
  return worst;
}

}  // namespace

std::string_view Shout(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kUnknown:
      return "UNKNOWN";
  }
  return "UNKNOWN";
}

std::string Headline(const Run& run) {
  const std::string text = run.summary_line.empty() ? MadeHeadline(run) : run.summary_line;
  return fmt::format("{}: {}{}", Shout(run.verdict), OneLine(text),
                     run.complete ? "" : " (incomplete: saved on the way out)");
}

std::string OutcomeText(const CaseRecord& record) {
  std::string text(record.judgement.verdict == Verdict::kPass ? NameOf(Verdict::kPass)
                                                              : Shout(record.judgement.verdict));
  if (const RankOutcome* outcome = WorstOutcome(record.judgement)) {
    return fmt::format("{}, rank {} {}", text, outcome->rank, NameOf(outcome->outcome));
  }
  if (!record.summary.stopped_by.empty()) text += ", " + record.summary.stopped_by;
  return text;
}

std::string FormatFindings(const Run& run) {
  FindingList findings;
  findings.Add(run.judgement, "");
  for (const CaseRecord& record : run.cases) {
    findings.Add(record.judgement, ", case " + record.name);
  }
  return findings.text() + RankLines(run) + WrongLines(run);
}

}  // namespace lockstep
