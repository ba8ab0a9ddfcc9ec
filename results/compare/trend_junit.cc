// A trend as JUnit: a test for each history and each machine. A history that is too short is
// skipped, and an inconclusive trend is an error, so that silence never passes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "results/compare/trend_print.h"
#include "results/report/exports/xml.h"
#include "results/report/figures.h"

namespace lockstep::results::compare {
namespace {

// The tests and their counts.
struct Suite {
  std::string tests;
  int count = 0, failures = 0, errors = 0, skipped = 0;

  // `element`: nullptr for a test that passed.
  void Add(const std::string& group, const std::string& name, const char* element,
           const std::string& message) {
    ++count;
    tests += fmt::format("  <testcase classname=\"{}\" name=\"{}\"",
                         report::exports::Xml(report::OneLine(group)),
                         report::exports::Xml(report::OneLine(name)));
    tests += element == nullptr
                 ? "/>\n"
                 : fmt::format(">\n    <{} message=\"{}\"/>\n  </testcase>\n", element,
                               report::exports::Xml(report::OneLine(message)));
  }
  void Failure(const std::string& group, const std::string& name, const std::string& message) {
    ++failures;
    Add(group, name, "failure", message);
  }
  void Error(const std::string& group, const std::string& name, const std::string& message) {
    ++errors;
    Add(group, name, "error", message);
  }
};

std::string ChangeMessage(const Series& series, const TrendEvent& event,
                          const LevelChange& change) {
  std::string text =
      fmt::format("{:+.1f} % since {} ({} -> {})", 100 * change.effect,
                  series.nights[change.night].when.substr(0, 10),
                  report::DurationText(change.before_ns), report::DurationText(change.after_ns));
  for (const Difference& one : event.differences) {
    text += fmt::format("; {}: {} -> {}", one.fact, one.base, one.candidate);
  }
  return text;
}

// Why the case's level is a regression; "" when it is none.
std::string RegressionOf(const Trend& trend, std::size_t index) {
  const Series& series = trend.series[index];
  for (const TrendEvent& event : trend.events) {
    for (const auto& [s, c] : event.changes) {
      const bool is_last = c + 1 == series.changes.size();
      if (s != index || !is_last || !event.recent || series.changes[c].effect <= 0) continue;
      return ChangeMessage(series, event, series.changes[c]);
    }
  }
  return "";
}

void AddHistory(const Trend& trend, std::size_t index, Suite& suite) {
  const Series& series = trend.series[index];
  const std::string group = series.program + "." + series.machine;
  const std::string name = fmt::format("{} ({} x {})", series.name, series.backend, series.ranks);
  const std::string regression = RegressionOf(trend, index);
  if (!regression.empty()) {
    suite.Failure(group, name, regression);
  } else if (series.nights.size() < stats::kFewestNights) {
    ++suite.skipped;
    suite.Add(group, name, "skipped",
              fmt::format("{} nights; fewer than {} say nothing", series.nights.size(),
                          stats::kFewestNights));
  } else {
    suite.Add(group, name, nullptr, "");
  }
}

}  // namespace

std::string FormatTrendJUnit(const Trend& trend) {
  Suite suite;
  // What is told by no single case: that there is no history to speak of.
  if (trend.exit_code == ExitCode::kInconclusive) {
    suite.Error("trend", "histories", trend.headline);
  } else {
    suite.Add("trend", "histories", nullptr, "");
  }
  for (std::size_t i = 0; i < trend.series.size(); ++i) AddHistory(trend, i, suite);
  for (const Peer& peer : trend.peers) {
    if (peer.slow) {
      suite.Failure("machines", peer.machine, peer.why);
    } else {
      suite.Add("machines", peer.machine, nullptr, "");
    }
  }
  for (const std::string& note : trend.notes) {
    suite.Error("files", note.substr(0, note.find(':')), note);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"lockstep "
      "trend\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}</testsuite>\n"
      "</testsuites>\n",
      suite.count, suite.failures, suite.errors, suite.skipped, suite.tests);
}

}  // namespace lockstep::results::compare
