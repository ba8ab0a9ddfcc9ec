// A trend as table, Markdown and JSON. The table and the Markdown share their lists and differ in
// marks. Curves show levels between the lowest and the highest; outliers do not stretch them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/named_members.h"
#include "core/base/units.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/stats/stats.h"
#include "results/compare/change_text.h"
#include "results/compare/trend.h"
#include "results/report/figures.h"
#include "results/report/grid.h"

namespace lockstep::results::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCurve = 40;         // nights that a curve shows
constexpr std::size_t kCasesOfEvent = 8;   // lines of an event
constexpr std::size_t kOutliersShown = 5;  // nights

std::string Date(const std::string& when) { return when.substr(0, 10); }

std::string Percent(double ratio) { return ChangeText(ratio) + " %"; }

const char* Direction(double effect) { return effect > 0 ? "slower" : "faster"; }

std::string CaseText(const Series& series) {
  return fmt::format("{} {} ({} x {})", series.program, series.name, series.backend, series.ranks);
}

// The newest nights as bars between the lowest and the highest level, which outliers do not
// stretch.
std::string Curve(const Series& series) {
  static constexpr std::string_view kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> values;
  for (const Night& night : series.nights) values.push_back(std::log(night.median_ns));
  if (values.size() > kCurve) values.erase(values.begin(), values.end() - kCurve);
  const double low = stats::Quantile(values, 0.02);
  const double range = std::max(stats::Quantile(values, 0.98) - low, 0.1);
  std::string curve;
  for (const double value : values) {
    curve += kBars[static_cast<int>(std::clamp((value - low) / range, 0.0, 1.0) * 7.99)];
  }
  return curve;
}

std::string EventText(const TrendEvent& event) {
  return fmt::format("{} on {}: {} of {} case{} {} by {} (median){}", Date(event.when),
                     event.machine, event.changes.size(), event.cases, event.cases == 1 ? "" : "s",
                     Direction(event.effect), Percent(event.effect),
                     event.recent ? ", recent" : "");
}

std::string DifferenceText(const Difference& difference) {
  if (difference.fact == kLockstepFact) return OtherVersionText({&difference, 1});
  return fmt::format("{}: {} -> {}", difference.fact, OneLine(difference.base),
                     OneLine(difference.candidate));
}

std::string ChangeText(const Series& series, const LevelChange& change) {
  return fmt::format("{}: {} ({} -> {}, {} nights before, {} since)", CaseText(series),
                     Percent(change.effect), FormatDuration(change.before_ns),
                     FormatDuration(change.after_ns), change.nights_before, change.nights_since);
}

std::string SlowText(const Peer& peer) {
  if (!peer.slow) return "";
  return peer.excess > peer.limit ? fmt::format("  <- SLOW (limit {})", Percent(peer.limit))
                                  : "  <- SLOW " + peer.why;
}

std::string PeerText(const Peer& peer) {
  return fmt::format("{}: {} beside the other {} machines, over {} case{}; worst: {} {}{}",
                     peer.machine, Percent(peer.excess), peer.machines - 1, peer.cases,
                     peer.cases == 1 ? "" : "s", peer.worst_case, Percent(peer.worst_excess),
                     SlowText(peer));
}

struct OutlierNight {
  std::size_t cases = 0;
  double effect = 0;  // the largest
  bool is_newest = false;
};

// (night, machine) -> what was off in it.
std::map<std::pair<std::string, std::string>, OutlierNight> OutliersOf(const Trend& trend) {
  std::map<std::pair<std::string, std::string>, OutlierNight> nights;
  for (const Series& series : trend.series) {
    for (const std::size_t i : series.segments.outliers) {
      const Night& night = series.nights[i];
      const auto segment = std::find_if(
          series.segments.segments.begin(), series.segments.segments.end(),
          [&](const stats::LevelSegment& one) { return one.first <= i && i <= one.last; });
      OutlierNight& outlier = nights[{night.when, series.machine}];
      const double effect = std::expm1(std::log(night.median_ns) - segment->level);
      ++outlier.cases;
      if (std::abs(effect) > std::abs(outlier.effect)) outlier.effect = effect;
      outlier.is_newest = i + 1 == series.nights.size();
    }
  }
  return nights;
}

std::vector<std::string> OutlierTexts(const Trend& trend) {
  std::vector<std::string> texts;
  const auto nights = OutliersOf(trend);
  for (auto night = nights.rbegin(); night != nights.rend(); ++night) {
    if (texts.size() == kOutliersShown) {
      texts.push_back(fmt::format("and {} nights before", nights.size() - kOutliersShown));
      break;
    }
    const auto& [key, outlier] = *night;
    texts.push_back(fmt::format(
        "{} on {}: {} case{}, by up to {}{}", Date(key.first), key.second, outlier.cases,
        outlier.cases == 1 ? "" : "s", Percent(outlier.effect),
        outlier.is_newest ? " (the newest night: the next one tells whether this is a new level)"
                          : ""));
  }
  return texts;
}

// One of what a history may say of its absence, of those that say it.
std::vector<std::string> TextsOf(const Trend& trend, std::string Series::*absence) {
  std::vector<std::string> texts;
  for (const Series& series : trend.series) {
    if ((series.*absence).empty()) continue;
    texts.push_back(fmt::format("{} on {}: {}", CaseText(series), series.machine, series.*absence));
  }
  return texts;
}

report::Grid GridOf(const Trend& trend) {
  report::Grid grid;
  grid.AddColumns(report::Grid::Align::kLeft, {"case", "machine"});
  grid.AddColumns(report::Grid::Align::kRight,
                  {"nights", "level now", "noise", "changes", "outliers"});
  grid.AddColumn(fmt::format("newest {} nights", kCurve), report::Grid::Align::kLeft);
  for (const Series& series : trend.series) {
    const bool known = series.nights.size() >= stats::kFewestNights;
    grid.AddRow({CaseText(series), series.machine, fmt::format("{}", series.nights.size()),
                 FormatDuration(series.level_ns()),
                 known ? fmt::format("{:.1f} %", 100 * series.segments.noise) : "-",
                 known ? fmt::format("{}", series.changes.size()) : "too few",
                 fmt::format("{}", series.segments.outliers.size()), Curve(series)});
  }
  return grid;
}

// Headed lists, the same for both formats but for their marks.
std::string Lists(const Trend& trend, std::string_view heading, std::string_view item,
                  std::string_view below) {
  std::string text;
  const auto head = [&](std::string_view title) {
    text += fmt::format("\n{}{}\n{}", heading, title, heading.empty() ? "" : "\n");
  };
  if (!trend.events.empty()) head("Level changes, newest first");
  for (const TrendEvent& event : trend.events) {
    text += fmt::format("{}{}\n", item, EventText(event));
    for (const Difference& one : event.differences) {
      text += fmt::format("{}changed with it: {}\n", below, DifferenceText(one));
    }
    if (event.differences.empty()) {
      text += fmt::format("{}no fact of the environment changed with it\n", below);
    }
    for (std::size_t i = 0; i < event.changes.size() && i < kCasesOfEvent; ++i) {
      const auto& [s, c] = event.changes[i];
      text += fmt::format("{}{}\n", below, ChangeText(trend.series[s], trend.series[s].changes[c]));
    }
    if (event.changes.size() > kCasesOfEvent) {
      text += fmt::format("{}and {} more cases\n", below, event.changes.size() - kCasesOfEvent);
    }
  }
  const auto list = [&](std::string_view title, const std::vector<std::string>& lines) {
    if (!lines.empty()) head(title);
    for (const std::string& line : lines) text += fmt::format("{}{}\n", item, OneLine(line));
  };
  list("Cases without a time now", TextsOf(trend, &Series::no_time));
  list("Cases that failed in the newest night", TextsOf(trend, &Series::failed));
  list("Failures of no history", trend.failures);
  list("Machines that are launched no more", trend.absent);
  list("Cases that newer plans leave out", TextsOf(trend, &Series::left_out));
  if (!trend.peers.empty()) head("Machines beside their peers");
  for (const Peer& peer : trend.peers) text += fmt::format("{}{}\n", item, PeerText(peer));
  list("Outlier nights, newest first", OutlierTexts(trend));
  list("Passed over", trend.notes);
  return text;
}

Json ToJson(const std::vector<Difference>& differences) {
  Json json = Json::array();
  for (const Difference& one : differences) {
    json.push_back({{"fact", one.fact}, {"before", one.base}, {"after", one.candidate}});
  }
  return json;
}

Json ToJson(const Series& series) {
  Json json = {LOCKSTEP_PAIRS(series, machine, program),
               {"case", series.name},
               LOCKSTEP_PAIRS(series, backend, ranks, no_time, failed, left_out),
               {"noise", series.segments.noise},
               {"level_ns", series.level_ns()},
               {"nights", Json::array()},
               {"changes", Json::array()}};
  const std::set<std::size_t> outliers(series.segments.outliers.begin(),
                                       series.segments.outliers.end());
  for (std::size_t i = 0; i < series.nights.size(); ++i) {
    const Night& night = series.nights[i];
    json["nights"].push_back(
        {LOCKSTEP_PAIRS(night, when, median_ns, launches), {"outlier", outliers.contains(i)}});
  }
  for (const LevelChange& change : series.changes) {
    json["changes"].push_back(
        {{"when", series.nights[change.night].when},
         LOCKSTEP_PAIRS(change, night, effect, before_ns, after_ns, nights_before, nights_since),
         {"changed_with_it", ToJson(change.differences)}});
  }
  return json;
}

}  // namespace

std::string FormatTrendTable(const Trend& trend) {
  return fmt::format("{}\n{}\nHistories\n{}exit code {}\n", trend.headline,
                     Lists(trend, "", "  ", "      "), GridOf(trend).Format(),
                     static_cast<int>(trend.exit_code));
}

std::string FormatTrendMarkdown(const Trend& trend) {
  std::string text = fmt::format("**{}**\n{}\n### Histories\n\n", trend.headline,
                                 Lists(trend, "### ", "- ", "  - "));
  text +=
      "| case | machine | nights | level now | noise | changes | curve |\n"
      "|---|---|--:|--:|--:|--:|---|\n";
  for (const Series& series : trend.series) {
    text += fmt::format("| {} | {} | {} | {} | {:.1f} % | {} | {} |\n", CaseText(series),
                        series.machine, series.nights.size(), FormatDuration(series.level_ns()),
                        100 * series.segments.noise, series.changes.size(), Curve(series));
  }
  return text;
}

std::string FormatTrendJson(const Trend& trend) {
  Json json = {{"lockstep", ThisVersionText()},
               {"headline", trend.headline},
               {"exit_code", static_cast<int>(trend.exit_code)},
               {"launches", trend.launches},
               {"events", Json::array()},
               {"machines", Json::array()},
               {"histories", Json::array()},
               {"absent", trend.absent},
               {"failures", trend.failures},
               {"not_read", trend.notes}};
  for (const TrendEvent& event : trend.events) {
    Json cases = Json::array();
    for (const auto& [s, c] : event.changes) {
      cases.push_back({{"program", trend.series[s].program},
                       {"case", trend.series[s].name},
                       {"effect", trend.series[s].changes[c].effect}});
    }
    json["events"].push_back({LOCKSTEP_PAIRS(event, when, machine, effect, recent),
                              {"cases_measured", event.cases},
                              {"changed_with_it", ToJson(event.differences)},
                              {"cases", std::move(cases)}});
  }
  for (const Peer& peer : trend.peers) {
    json["machines"].push_back({LOCKSTEP_PAIRS(peer, machine, excess, limit, slow, cases,
                                               cases_slow, why, worst_case, worst_excess)});
  }
  for (const Series& series : trend.series) json["histories"].push_back(ToJson(series));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::results::compare
