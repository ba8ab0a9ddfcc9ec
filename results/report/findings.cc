// The headline and the sections of what went wrong. A finding of the launch that a case has too is
// shown once. Without findings the headline follows from wrong elements or the number of cases.
#include "results/report/findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

constexpr std::size_t kMostWrong = 8;

const verdict::Finding* FirstFinding(const store::Run& run) {
  if (!run.judgement.findings.empty()) return &run.judgement.findings.front();
  for (const store::CaseRecord& record : run.cases) {
    if (!record.judgement.findings.empty()) return &record.judgement.findings.front();
  }
  return nullptr;
}

std::int64_t WrongElements(const store::Run& run) {
  std::int64_t wrong = 0;
  for (const store::CaseRecord& record : run.cases) wrong += record.summary.wrong_elements;
  return wrong;
}

std::string MadeHeadline(const store::Run& run) {
  if (const verdict::Finding* finding = FirstFinding(run)) {
    return finding->headline.text();
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
  void Add(const verdict::Judgement& judgement, const std::string& where) {
    for (const verdict::Finding& finding : judgement.findings) {
      if (!seen_.insert(std::string(finding.cause.name()) + finding.message).second) continue;
      text_ += fmt::format("  {}. {} ({}, {}{}): {}\n", seen_.size(), finding.cause.name(),
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

std::string WrongLines(const store::Run& run) {
  std::string text;
  std::size_t shown = 0;
  for (const store::CaseRecord& record : run.cases) {
    for (const store::WrongResult& wrong : record.wrong) {
      if (++shown > kMostWrong) continue;
      text += fmt::format(
          "  {}: rank {}, iteration {}, operation {}, element {}: expected {}, got {}\n",
          record.name, wrong.rank, wrong.iteration, wrong.operation, wrong.element, wrong.expected,
          wrong.got);
    }
  }
  const std::int64_t all = WrongElements(run);
  if (all == 0 && shown == 0) return "";
  return fmt::format("\nWrong results: {} elements, the first of them\n{}", all, text);
}

// A culprit's outcome, or else the first that is not `finished`; nullptr when all finished.
const verdict::RankOutcome* WorstOutcome(const verdict::Judgement& judgement) {
  const verdict::RankOutcome* worst = nullptr;
  for (const verdict::RankOutcome& outcome : judgement.outcomes) {
    if (outcome.outcome == verdict::Outcome::kFinished) continue;
    if (worst == nullptr) worst = &outcome;
    for (const verdict::Finding& finding : judgement.findings) {
      const auto& culprits = finding.culprits;
      if (std::find(culprits.begin(), culprits.end(), outcome.rank) != culprits.end()) {
        return &outcome;
      }
    }
  }
  return worst;
}

// Nothing was found in it, and it was not measured to its end.
bool IsOpen(const store::CaseRecord& record) {
  return record.judgement.verdict == verdict::Verdict::kUnknown &&
         record.judgement.findings.empty() && !record.trial;
}

// Why a case was never measured, in words.
std::string ReasonOf(const std::string& stopped_by) {
  if (stopped_by == "not_run") return "not begun";
  if (stopped_by == "not_kept") return "records not kept";
  if (stopped_by == "time_budget") return "no time left";
  return stopped_by.empty() ? "no reason is known" : stopped_by;
}

}  // namespace

std::string_view Shout(verdict::Verdict verdict) {
  constexpr std::string_view kWords[] = {"PASS", "FAIL", "INCONCLUSIVE"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::string Headline(const store::Run& run) {
  const std::string text = run.summary_line.empty() ? MadeHeadline(run) : run.summary_line;
  // Where nothing else is wrong, the text says that it was ended.
  const bool say = !run.complete && run.verdict != verdict::Verdict::kUnknown;
  return fmt::format("{}: {}{}", Shout(run.verdict), OneLine(text), say ? " (incomplete)" : "");
}

bool IsUnmeasured(const store::CaseRecord& record) {
  return IsOpen(record) && record.summary.iterations == 0;
}

std::string UnmeasuredText(const store::Run& run) {
  std::map<std::string, int> reasons;
  int count = 0;
  for (const store::CaseRecord& record : run.cases) {
    if (!IsUnmeasured(record)) continue;
    ++count;
    ++reasons[ReasonOf(record.summary.stopped_by)];
  }
  if (count == 0) return "";
  std::string why;
  for (const auto& [reason, cases] : reasons) {
    why += fmt::format("{}{}", why.empty() ? "" : ", ", reason);
    if (reasons.size() > 1) why += fmt::format(" ({})", cases);
  }
  return fmt::format("Not measured: {} of {} case{}; {}\n", count, run.cases.size(),
                     run.cases.size() == 1 ? "" : "s", why);
}

std::string MeasuredText(const store::Summary& summary) {
  if (summary.stopped_by == "precision") return "precise";
  if (summary.stopped_by == "iterations") return "";
  if (summary.stopped_by == "cut_short") return "cut short";
  return summary.iterations > 0 ? "imprecise" : "";
}

std::string OutcomeText(const store::CaseRecord& record) {
  if (IsOpen(record)) return "unfinished";  // the headline says the rest
  const std::string text(record.judgement.verdict == verdict::Verdict::kPass
                             ? verdict::NameOf(verdict::Verdict::kPass)
                             : Shout(record.judgement.verdict));
  if (const verdict::RankOutcome* outcome = WorstOutcome(record.judgement)) {
    return fmt::format("{}, rank {} {}", text, outcome->rank, verdict::NameOf(outcome->outcome));
  }
  return text;
}

std::string FormatFindings(const store::Run& run) {
  FindingList findings;
  findings.Add(run.judgement, "");
  for (const store::CaseRecord& record : run.cases) {
    findings.Add(record.judgement, ", case " + record.name);
  }
  return findings.text() + FormatUnfinished(run.judgement) + WrongLines(run);
}

}  // namespace lockstep::results::report
