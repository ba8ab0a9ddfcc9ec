// A trend as JUnit: a test for each history and each machine. A history that is too short is
// skipped, and an inconclusive trend is an error, so that silence never passes.
#include <fmt/core.h>

#include <string>

#include "core/base/units.h"
#include "results/compare/change_text.h"
#include "results/compare/trend.h"
#include "results/report/exports/text.h"
#include "results/report/figures.h"

namespace lockstep::results::compare {
namespace {

// Why the level of a history is a regression.
std::string ChangeMessage(const Series& series, const LevelChange& change) {
  std::string text = fmt::format("{} % since {} ({} -> {})", ChangeText(change.effect),
                                 series.nights[change.night].when.substr(0, 10),
                                 FormatDuration(change.before_ns), FormatDuration(change.after_ns));
  for (const Difference& one : change.differences) {
    text += fmt::format("; {}: {} -> {}", one.fact, one.base, one.candidate);
  }
  return text;
}

void AddHistory(const Series& series, report::exports::JUnitSuite& suite) {
  const std::string group = series.program + "." + series.machine;
  const std::string name = fmt::format("{} ({} x {})", series.name, series.backend, series.ranks);
  if (series.slower) {
    suite.Add(group, name, "failure", ChangeMessage(series, *series.slower));
  } else if (!series.no_time.empty()) {
    suite.Add(group, name, "error", series.no_time);
  } else if (!series.failed.empty()) {
    suite.Add(group, name, "error", "in the newest night: " + series.failed);
  } else if (series.nights.size() < stats::kFewestNights) {
    suite.Add(group, name, "skipped",
              fmt::format("{} nights; fewer than {} say nothing", series.nights.size(),
                          stats::kFewestNights));
  } else {
    suite.Add(group, name);
  }
}

}  // namespace

std::string FormatTrendJUnit(const Trend& trend) {
  report::exports::JUnitSuite suite;
  // What is told by no single case: that there is no history to speak of, or a lost one.
  if (trend.exit_code == ExitCode::kInconclusive) {
    suite.Add("trend", "histories", "error", trend.headline);
  } else {
    suite.Add("trend", "histories");
  }
  for (const Series& series : trend.series) AddHistory(series, suite);
  for (const Peer& peer : trend.peers) {
    if (peer.slow) {
      suite.Add("machines", peer.machine, "failure", peer.why);
    } else {
      suite.Add("machines", peer.machine);
    }
  }
  for (const std::string& one : trend.absent) {
    suite.Add("absent machines", one.substr(0, one.find(':')), "skipped", one);
  }
  for (const std::string& note : trend.notes) {
    suite.Add("files", note.substr(0, note.find(':')), "error", note);
  }
  return suite.Format("lockstep trend", /*with_skipped=*/true);
}

}  // namespace lockstep::results::compare
