// Trials of stress runs, a row each, with the reason below. Many ranks are counted by outcome
// instead of listed. What all rows have in common stands above them, so that rows fit a terminal.
// The verdict is unknown when fewer cases ran than were planned.
#include "results/report/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/base/units.h"
#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/findings.h"
#include "results/report/grid.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

// "hung hung", and of many ranks "finished x63, killed x1".
std::string OutcomesText(const verdict::Judgement& judgement) {
  constexpr std::size_t kMostSingly = 2;
  std::vector<std::pair<std::string_view, int>> counts;
  std::vector<std::string_view> singly;
  for (const verdict::RankOutcome& rank : judgement.outcomes) {
    const std::string_view name = verdict::NameOf(rank.outcome);
    singly.push_back(name);
    const auto known =
        std::ranges::find_if(counts, [&](const auto& count) { return count.first == name; });
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

// Why each case passed; of the others FormatTrialDetails tells.
std::string FormatReasons(const std::vector<store::CaseRecord>& cases) {
  std::string text;
  for (const store::CaseRecord& record : cases) {
    const bool passed = record.trial && record.judgement.verdict == verdict::Verdict::kPass;
    if (passed) text += Wrap(fmt::format("{}: {}", record.name, OneLine(record.trial->why)));
  }
  return text.empty() ? "" : "\n" + text;
}

// "recovery/kill_shrink: recovered (shrink) from rank_killed: detect 6 ms, abort …", a line each.
std::string FormatRecoveries(const std::vector<store::CaseRecord>& cases) {
  std::string text;
  for (const store::CaseRecord& record : cases) {
    for (const store::RecoveryRecord& made : record.recoveries) {
      std::string parts;
      for (const auto& [name, seconds] :
           {std::pair("detect", made.detect_seconds), std::pair("abort", made.abort_seconds),
            std::pair("rebuild", made.rebuild_seconds), std::pair("resume", made.resume_seconds)}) {
        if (!std::isfinite(seconds)) continue;
        parts += fmt::format("{}{} {}", parts.empty() ? ": " : ", ", name,
                             FormatDuration(seconds * 1e9));
      }
      const bool resumed = made.outcome == "resumed";
      text += Wrap(fmt::format("{}: {} ({}) from {}{}", record.name,
                               resumed ? "recovered" : made.outcome, made.mode, made.cause, parts));
    }
  }
  return text.empty() ? "" : "\n" + text;
}

// It failed, and who, where and what is known: that is told first.
bool WasFound(const store::CaseRecord& record) {
  return record.judgement.verdict == verdict::Verdict::kFail && !record.judgement.findings.empty();
}

std::int64_t Count(const std::vector<store::CaseRecord>& cases, verdict::Verdict verdict) {
  return std::ranges::count_if(
      cases, [&](const store::CaseRecord& record) { return record.judgement.verdict == verdict; });
}

struct TrialColumn {
  std::string title;
  bool folds;  // it stands above the table where all rows have the same
  std::vector<std::string> cells;
};

std::vector<TrialColumn> TrialColumns(const std::vector<store::CaseRecord>& cases) {
  std::vector<TrialColumn> columns = {{"backend", true, {}},   {"ranks", true, {}},
                                      {"seed", true, {}},      {"outcomes", false, {}},
                                      {"cause", false, {}},    {"culprits", false, {}},
                                      {"detected", false, {}}, {"verdict", true, {}}};
  for (const store::CaseRecord& record : cases) {
    if (!record.trial) continue;
    const auto& findings = record.judgement.findings;
    const double detected = record.trial->detected_after_seconds;
    const std::string row[] = {
        record.backend,
        std::to_string(record.ranks),
        ValueOf(record.settings, "seed"),
        OutcomesText(record.judgement),
        findings.empty() ? "-" : std::string(findings.front().cause.name()),
        findings.empty() ? "-" : fmt::format("{}", fmt::join(findings.front().culprits, ",")),
        FormatDuration(detected * 1e9),
        std::string(verdict::NameOf(record.judgement.verdict))};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(row[i]);
  }
  return columns;
}

bool IsAlike(const TrialColumn& column) {
  return column.folds &&
         std::ranges::count(column.cells, column.cells.front()) == std::ssize(column.cells);
}

// Takes off what all names begin with, up to and with a slash.
std::string CutFolder(std::vector<std::string>& names) {
  const std::string folder = names.front().substr(0, names.front().rfind('/') + 1);
  const bool shared = names.size() > 1 && std::ranges::all_of(names, [&](const std::string& name) {
                        return name.starts_with(folder);
                      });
  if (!shared) return "";
  for (std::string& name : names) name.erase(0, folder.size());
  return folder;
}

std::vector<std::string> ScenariosOf(const std::vector<store::CaseRecord>& cases) {
  std::vector<std::string> names;
  for (const store::CaseRecord& record : cases) {
    if (!record.trial) continue;
    const std::string scenario = ValueOf(record.settings, "scenario");
    names.push_back(OneLine(scenario.empty() ? record.name : scenario));
  }
  return names;
}

}  // namespace

std::string FormatTrials(const std::vector<store::CaseRecord>& cases) {
  std::vector<std::string> names = ScenariosOf(cases);
  if (names.empty()) return "";
  const std::string folder = CutFolder(names);
  std::string alike = folder.empty() ? "" : "scenario " + folder + "*";
  std::vector<TrialColumn> columns;
  for (TrialColumn& column : TrialColumns(cases)) {
    if (IsAlike(column)) {
      alike +=
          fmt::format("{}{} {}", alike.empty() ? "" : ", ", column.title, column.cells.front());
    } else {
      columns.push_back(std::move(column));
    }
  }
  Grid grid;
  grid.AddColumn("scenario", Grid::Align::kLeft);
  for (const TrialColumn& column : columns) grid.AddColumn(column.title, Grid::Align::kLeft);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> row = {names[i]};
    for (TrialColumn& column : columns) row.push_back(std::move(column.cells[i]));
    grid.AddRow(std::move(row));
  }
  return (alike.empty() ? "" : "All rows: " + alike + "\n") + grid.Format(kNarrow) +
         FormatRecoveries(cases) + FormatReasons(cases);
}

std::string FormatTrialDetails(const store::CaseRecord& record) {
  const std::string why = record.trial ? record.trial->why : "";
  const std::string first =
      WasFound(record) ? record.judgement.findings.front().headline.text() : why;
  std::string text =
      fmt::format("\n{}: {}: {}\n", Shout(record.judgement.verdict), record.name, first);
  if (first != why) text += fmt::format("  {}\n", why);
  for (const verdict::Finding& finding : record.judgement.findings) {
    text += fmt::format("  {}{}: {}\n  {}\n", finding.cause.name(),
                        finding.proved ? "" : " (suspected)", finding.message, finding.remedy);
  }
  const std::string faults = ValueOf(record.settings, "faults");
  if (!faults.empty()) text += fmt::format("  injected: {}\n", faults);
  return text + FormatUnfinished(record.judgement);
}

verdict::Verdict VerdictOf(const std::vector<store::CaseRecord>& cases, std::size_t planned) {
  if (Count(cases, verdict::Verdict::kFail) > 0) return verdict::Verdict::kFail;
  const bool all = cases.size() == planned;
  return all && Count(cases, verdict::Verdict::kUnknown) == 0 ? verdict::Verdict::kPass
                                                              : verdict::Verdict::kUnknown;
}

std::string SummaryLineOf(const std::vector<store::CaseRecord>& cases, std::size_t planned) {
  const verdict::Verdict verdict = VerdictOf(cases, planned);
  if (verdict == verdict::Verdict::kPass) {
    return fmt::format("all {} cases came out as they should", planned);
  }
  for (const store::CaseRecord& record : cases) {
    if (record.judgement.verdict != verdict) continue;
    if (WasFound(record)) {
      verdict::Headline headline = record.judgement.findings.front().headline;
      if (planned > 1)
        headline.Add(
            fmt::format("; {}, {} of {} cases", record.name, Count(cases, verdict), planned));
      return headline.text();
    }
    return fmt::format("{} of {} cases; {}: {}", Count(cases, verdict), planned, record.name,
                       record.trial ? record.trial->why : "");
  }
  return fmt::format("ended after {} of {} cases", cases.size(), planned);
}

}  // namespace lockstep::results::report
