// A comparison as table, Markdown and JUnit. What needs attention comes first. Names and notes are
// escaped for each format, since cases may have any name.
#include "results/compare/print.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/base/wrap.h"
#include "results/compare/change_text.h"
#include "results/report/exports/text.h"
#include "results/report/figures.h"
#include "results/report/grid.h"

namespace lockstep::results::compare {
namespace {

std::string LaunchesText(const CaseComparison& one) {
  const auto side = [](const SideOfCase& of) {
    return of.timed == of.launches ? fmt::format("{}", of.launches)
                                   : fmt::format("{}/{}", of.timed, of.launches);
  };
  return side(one.base) + " : " + side(one.candidate);
}

// What is to be said about a case beside its figures.
std::string NoteText(const CaseComparison& one) {
  std::string note = OneLine(one.why);
  if (!one.resolve.empty()) note += (note.empty() ? "" : " -> ") + one.resolve;
  return note;
}

std::string MethodText(const LaunchComparison& comparison) {
  std::string text = fmt::format(
      "change: of the median over launches of the candidate, with its 95 % interval "
      "(Hodges-Lehmann); slower or faster: proved by ranks\n(Mann-Whitney), corrected for {} "
      "case{} at {:.0f} % (Benjamini-Hochberg), or clear at sight, and by the minimum effect at "
      "least; same:\nthe interval lies within it; fewer than {} launches a side decide nothing\n",
      comparison.tests, comparison.tests == 1 ? "" : "s", 100 * kFalseChanges, kFewestLaunches);
  if (!comparison.interleaved) {
    text += fmt::format(
        "The launches of the sides are not interleaved in time: {:.0f} % of change may be drift of "
        "the machine (--launch-drift)\n",
        100 * comparison.drift);
  }
  return text;
}

std::string ForMarkdown(const std::string& text) {
  std::string out;
  for (const char c : OneLine(text)) {
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    if (c == '|' || c == '*' || c == '_') out += '\\';
    out += c;
  }
  return out;
}

bool SeveralPrograms(const auto& cases) {
  return std::ranges::any_of(cases,
                             [&](const auto& one) { return one.program != cases.front().program; });
}

bool SeveralBackends(const auto& cases) {
  return std::ranges::any_of(cases, [&](const auto& one) {
    return one.backend != cases.front().backend || one.ranks != cases.front().ranks;
  });
}

// The name, and what else is needed to tell it from the other cases.
std::string CaseText(const auto& one, bool programs, bool backends) {
  std::string text = programs ? one.program + " " + one.name : one.name;
  if (backends && !one.backend.empty()) text += fmt::format(" ({} x {})", one.backend, one.ranks);
  return text;
}

bool IsOpen(const CaseComparison& one) {
  return !one.OutcomeSaysAll() &&
         (one.change == Change::kAmbiguous || one.change == Change::kMissing);
}

// The worst of the outcome, when it changed, and the change of time.
std::string VerdictText(const CaseComparison& one) {
  if (one.outcome_change == OutcomeChange::kWorse) return "FAILS NOW";
  const bool bad_time = IsOpen(one) || one.change == Change::kSlower;
  if (one.outcome_change == OutcomeChange::kBetter && !bad_time) return "mended";
  return std::string(NameOf(one.change));
}

// "+5.1 % (+3.2 .. +7.0)"; "-" without times.
std::string EffectText(const Effect95& effect) {
  if (!std::isfinite(effect.estimate)) return "-";
  if (!std::isfinite(effect.low) || !std::isfinite(effect.high)) {
    return ChangeText(effect.estimate) + " %";
  }
  const double half_width = (effect.high - effect.low) / 2;
  return fmt::format("{} % ({} .. {})", ChangeText(effect.estimate, half_width),
                     ChangeText(effect.low, half_width), ChangeText(effect.high, half_width));
}

}  // namespace

std::string FormatTable(const LaunchComparison& comparison) {
  const bool programs = SeveralPrograms(comparison.cases);
  const bool backends = SeveralBackends(comparison.cases);
  report::Grid grid;
  grid.AddColumns(report::Grid::Align::kLeft, {"verdict", "case"});
  grid.AddColumns(report::Grid::Align::kRight,
                  {"base", "candidate", "change", "counts from", "launches"});
  grid.AddColumn("", report::Grid::Align::kLeft);
  for (const CaseComparison& one : comparison.cases) {
    grid.AddRow({VerdictText(one), CaseText(one, programs, backends),
                 FormatDuration(one.base.median_ns), FormatDuration(one.candidate.median_ns),
                 EffectText(one.effect), fmt::format("{:.3g} %", 100 * one.min_effect),
                 LaunchesText(one), NoteText(one)});
  }
  std::string text = comparison.headline + "\n\n" + grid.Format();
  const std::string versions = OtherVersionText(comparison.differences);
  if (!versions.empty()) text += fmt::format("\nThe sides were {}\n", OneLine(versions));
  if (!comparison.differences.empty()) text += "\nWhat differs between the sides:\n";
  for (const Difference& difference : comparison.differences) {
    text += fmt::format("  {}: {} -> {}\n", difference.fact, OneLine(difference.base),
                        OneLine(difference.candidate));
  }
  for (const std::string& note : comparison.notes) text += "\nnot read: " + OneLine(note);
  return text + (comparison.notes.empty() ? "\n" : "\n\n") + MethodText(comparison) +
         fmt::format("exit code {}\n", static_cast<int>(comparison.exit_code));
}

std::string FormatTable(const LaunchSummary& summary) {
  const bool programs = SeveralPrograms(summary.cases);
  const bool backends = SeveralBackends(summary.cases);
  report::Grid grid;
  grid.AddColumn("case", report::Grid::Align::kLeft);
  grid.AddColumns(report::Grid::Align::kRight, {"median", "+-%", "lowest", "highest", "launches"});
  grid.AddColumn("outcome", report::Grid::Align::kLeft);
  for (const CaseOverLaunches& one : summary.cases) {
    const bool timed = one.timed > 0;
    const auto duration = [timed](double ns, double half_width_ns = kNoHalfWidth) {
      return timed ? FormatDuration(ns, half_width_ns) : std::string("-");
    };
    const double half_width_ns = one.interval.relative_half_width() * one.interval.median;
    grid.AddRow({CaseText(one, programs, backends), duration(one.interval.median, half_width_ns),
                 timed ? report::PercentText(100 * one.interval.relative_half_width()) : "-",
                 duration(one.lowest_ns), duration(one.highest_ns),
                 one.timed == one.launches ? fmt::format("{}", one.launches)
                                           : fmt::format("{}/{}", one.timed, one.launches),
                 OneLine(one.outcome)});
  }
  return summary.headline + "\n\n" + grid.Format() +
         "\nA launch counts once, by its median. +-%: half the 95 % interval of the median over "
         "launches\n";
}

std::string FormatMarkdown(const LaunchComparison& comparison) {
  const bool programs = SeveralPrograms(comparison.cases);
  const bool backends = SeveralBackends(comparison.cases);
  std::string text = fmt::format("**{}**\n\n", ForMarkdown(comparison.headline));
  text +=
      "| verdict | case | base | candidate | change (95 %) | launches | |\n"
      "|---|---|--:|--:|--:|--:|---|\n";
  for (const CaseComparison& one : comparison.cases) {
    const bool loud = one.outcome_change == OutcomeChange::kWorse || one.change == Change::kSlower;
    const std::string verdict = VerdictText(one);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n",
                        loud ? "**" + verdict + "**" : verdict,
                        ForMarkdown(CaseText(one, programs, backends)),
                        FormatDuration(one.base.median_ns), FormatDuration(one.candidate.median_ns),
                        EffectText(one.effect), LaunchesText(one), ForMarkdown(NoteText(one)));
  }
  const std::string versions = OtherVersionText(comparison.differences);
  if (!versions.empty()) text += fmt::format("\nThe sides were {}.\n", ForMarkdown(versions));
  if (!comparison.differences.empty()) {
    text += "\n| what differs | base | candidate |\n|---|---|---|\n";
    for (const Difference& difference : comparison.differences) {
      text += fmt::format("| {} | {} | {} |\n", ForMarkdown(difference.fact),
                          ForMarkdown(difference.base), ForMarkdown(difference.candidate));
    }
  }
  for (const std::string& note : comparison.notes)
    text += "\nNot read: " + ForMarkdown(note) + "\n";
  return text + "\n" + ForMarkdown(MethodText(comparison)) + "\n";
}

std::string FormatJUnit(const LaunchComparison& comparison) {
  report::exports::JUnitSuite suite;
  const bool backends = SeveralBackends(comparison.cases);
  for (const CaseComparison& one : comparison.cases) {
    const bool failed =
        one.outcome_change == OutcomeChange::kWorse || one.change == Change::kSlower;
    suite.Add(one.program, CaseText(one, false, backends),
              failed        ? "failure"
              : IsOpen(one) ? "error"
                            : "",
              fmt::format("{} {}; {}", VerdictText(one), EffectText(one.effect), NoteText(one)));
  }
  for (const std::string& note : comparison.notes) {
    suite.Add("files", note.substr(0, note.find(':')), "error", note);
  }
  return suite.Format("lockstep compare", /*with_skipped=*/false);
}

}  // namespace lockstep::results::compare
