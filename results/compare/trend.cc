// Builds a history for each case and machine, finds its level changes, and gathers those of one
// night into events. Facts of the nights around a change are compared, to say what changed with it.
// Only recent slower levels make the exit code a regression, and a case that lost its times is
// inconclusive.
#include "results/compare/trend.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/stats/stats.h"
#include "results/compare/absence.h"
#include "results/compare/machines.h"
#include "results/compare/min_effect.h"

namespace lockstep::results::compare {
namespace {

// How many nights of either level are looked at for what changed with it: enough to tell a fact of
// the level from one of a night.
constexpr std::size_t kNightsAround = 5;

// Seconds since 1970 of "2026-11-21T10:44:25Z".
std::optional<double> SecondsOf(const std::string& started_at) {
  tm time{};
  const char* end = strptime(started_at.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&time));
}

// The nights of each machine, oldest first. Launches without a time are left out.
std::map<std::string, std::vector<LaunchesOfNight>> NightsByMachine(const Machines& machines,
                                                                    double gap_seconds) {
  std::map<std::string, std::vector<LaunchesOfNight>> nights;
  for (const auto& [machine, launches] : machines.launches) {
    std::vector<std::pair<double, const Launch*>> timed;
    for (const Launch* launch : launches) {
      const std::optional<double> seconds = SecondsOf(launch->started_at);
      if (seconds) timed.emplace_back(*seconds, launch);
    }
    std::ranges::stable_sort(timed, {}, [](const auto& one) { return one.first; });
    std::vector<LaunchesOfNight>& own = nights[machine];
    for (std::size_t i = 0; i < timed.size(); ++i) {
      if (i == 0 || timed[i].first - timed[i - 1].first > gap_seconds) own.emplace_back();
      own.back().push_back(timed[i].second);
    }
  }
  return nights;
}

using CaseKey = std::tuple<std::string, std::string, std::string, int>;

// A night of a series, and the night of the machine that it is of.
struct Sighting {
  std::vector<double> medians;
  const LaunchesOfNight* night = nullptr;
};

std::map<CaseKey, std::vector<Sighting>> SightingsOf(const std::vector<LaunchesOfNight>& nights,
                                                     const std::string& cases) {
  std::map<CaseKey, std::vector<Sighting>> sightings;
  for (const LaunchesOfNight& night : nights) {
    for (const Launch* launch : night) {
      for (const CaseFigures& figures : launch->cases) {
        if (!std::isfinite(figures.median_ns) || !MatchesGlob(cases, figures.name)) continue;
        auto& own = sightings[{launch->program, figures.name, figures.backend, figures.ranks}];
        if (own.empty() || own.back().night != &night) own.push_back({{}, &night});
        own.back().medians.push_back(figures.median_ns);
      }
    }
  }
  return sightings;
}

std::vector<const Launch*> LaunchesIn(const std::vector<Sighting>& sightings, std::size_t first,
                                      std::size_t last, const std::string& program) {
  std::vector<const Launch*> launches;
  for (std::size_t i = first; i <= last; ++i) {
    for (const Launch* launch : *sightings[i].night) {
      if (launch->program == program) launches.push_back(launch);
    }
  }
  return launches;
}

std::vector<Difference> ChangedWith(const std::vector<Sighting>& sightings,
                                    const stats::LevelSegment& before,
                                    const stats::LevelSegment& after, const std::string& program) {
  const std::size_t oldest = before.last + 1 > before.first + kNightsAround
                                 ? before.last + 1 - kNightsAround
                                 : before.first;
  const std::size_t newest = std::min(after.last, after.first + kNightsAround - 1);
  std::vector<Difference> differences =
      FactDifferences(LaunchesIn(sightings, oldest, before.last, program),
                      LaunchesIn(sightings, after.first, newest, program));
  std::erase_if(differences, [](const Difference& one) { return !one.apart; });
  return differences;
}

bool IsRecent(const Series& series, const LevelChange& change, const TrendOptions& options) {
  return series.nights.size() - change.night <= options.recent_nights;
}

std::optional<LevelChange> SlowerOf(const Series& series, const TrendOptions& options) {
  for (LevelChange change : series.changes) {
    change.after_ns = series.level_ns();
    change.effect = change.after_ns / change.before_ns - 1;
    if (IsRecent(series, change, options) && std::log1p(change.effect) >= options.change_min) {
      return change;
    }
  }
  return std::nullopt;
}

// What the newest night lacks. Not every case is measured every night, so absence alone tells after
// the recent nights only; a failure tells at once, also beside a launch that has a time.
void TellAbsence(const std::vector<LaunchesOfNight>& nights, const LaunchesOfNight* last,
                 const TrendOptions& options, Series& series) {
  const auto since = static_cast<std::size_t>(&nights.back() - last);
  const CaseOfProgram wanted{series.program, series.name, series.backend, series.ranks};
  if (since == 0) {
    series.failed = FailuresIn(nights.back(), wanted);
    return;
  }
  const std::string failure = FailureIn(nights.back(), wanted);
  if (!failure.empty()) {
    series.no_time = "no time in the newest night: " + failure;
    return;
  }
  if (since < options.recent_nights) return;
  const auto all = std::span(nights);
  if (WasLeftOut(all.first(all.size() - since), all.last(since), wanted)) {
    series.left_out = "not to be measured since " + (last + 1)->front()->started_at.substr(0, 10);
  } else {
    series.no_time = fmt::format("no time in the newest {} nights", since);
  }
}

Series SeriesOf(const std::string& machine, const CaseKey& key,
                const std::vector<LaunchesOfNight>& nights, const std::vector<Sighting>& sightings,
                const TrendOptions& options) {
  Series series;
  series.machine = machine;
  std::tie(series.program, series.name, series.backend, series.ranks) = key;
  std::vector<double> logs;
  for (const Sighting& sighting : sightings) {
    const double median_ns = stats::Median(sighting.medians);
    series.nights.push_back(
        {sighting.night->front()->started_at, median_ns, sighting.medians.size()});
    logs.push_back(std::log(median_ns));
  }
  stats::ChangeOptions how;
  how.change_min = options.change_min;
  series.segments = stats::FindChangePoints(logs, how);
  const std::vector<stats::LevelSegment>& levels = series.segments.segments;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const stats::LevelSegment& before = levels[i - 1];
    const stats::LevelSegment& after = levels[i];
    series.changes.push_back({after.first, std::exp(before.level), std::exp(after.level),
                              std::expm1(after.level - before.level),
                              before.last - before.first + 1, after.last - after.first + 1,
                              ChangedWith(sightings, before, after, series.program)});
  }
  series.slower = SlowerOf(series, options);
  TellAbsence(nights, sightings.back().night, options, series);
  return series;
}

// Of the machine's newest night. That it never had any time is told by FindMachines.
void TellFailures(const std::string& machine, const std::vector<LaunchesOfNight>& nights,
                  const TrendOptions& options, Trend& trend) {
  const bool timed = std::ranges::any_of(nights, [](const LaunchesOfNight& night) {
    return std::ranges::any_of(night, [](const Launch* launch) { return HasTime(*launch); });
  });
  if (!timed) return;
  std::vector<CaseOfProgram> known;
  for (const Series& one : trend.series) {
    if (one.machine != machine) continue;
    known.push_back({one.program, one.name, one.backend, one.ranks});
  }
  for (std::string& one : FailuresOfNoHistory(machine, nights.back(), known, options.cases)) {
    trend.failures.push_back(std::move(one));
  }
}

// Whether a machine is to be launched nobody tells, so this decides nothing.
std::vector<std::string> AbsentOf(
    const std::map<std::string, std::vector<LaunchesOfNight>>& by_machine,
    const TrendOptions& options) {
  std::vector<std::string> absent;
  for (const auto& [machine, own] : by_machine) {
    if (own.empty() || machine == "unknown") continue;
    const std::string& last = own.back().back()->started_at;
    std::string other;
    std::ptrdiff_t most = 0;
    for (const auto& [name, nights] : by_machine) {
      const std::ptrdiff_t since = std::ranges::count_if(
          nights, [&](const LaunchesOfNight& night) { return night.front()->started_at > last; });
      if (since > most) other = name;
      most = std::max(most, since);
    }
    if (most < static_cast<std::ptrdiff_t>(options.recent_nights)) continue;
    absent.push_back(fmt::format("{}: launched last on {}; {} was in {} nights since", machine,
                                 last.substr(0, 10), other, most));
  }
  return absent;
}

// Launches of one night start within its gap; a case may be missing in a night, so the index does
// not tell: the start of the machine's night does.
std::vector<TrendEvent> EventsOf(const std::vector<Series>& all, const TrendOptions& options) {
  std::map<std::pair<std::string, std::string>, TrendEvent> events;  // when, machine
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (std::size_t c = 0; c < all[s].changes.size(); ++c) {
      const LevelChange& change = all[s].changes[c];
      const std::string& when = all[s].nights[change.night].when;
      TrendEvent& event = events[{when, all[s].machine}];
      event.machine = all[s].machine;
      event.when = when;
      event.changes.emplace_back(s, c);
      if (IsRecent(all[s], change, options)) event.recent = true;
      if (event.differences.empty()) event.differences = change.differences;
    }
  }
  std::vector<TrendEvent> list;
  for (auto& [key, event] : events) {
    std::vector<double> effects;
    for (const auto& [s, c] : event.changes) effects.push_back(all[s].changes[c].effect);
    event.effect = stats::Median(effects);
    for (const Series& series : all) {
      if (series.machine != event.machine) continue;
      event.cases += static_cast<std::size_t>(std::ranges::count_if(
          series.nights, [&](const Night& night) { return night.when == event.when; }));
    }
    list.push_back(std::move(event));
  }
  std::ranges::reverse(list);
  return list;
}

// What decides, in numbers.
struct Totals {
  std::ptrdiff_t slower = 0, slow_machines = 0, lost = 0, failed = 0, long_enough = 0;
};

Totals TotalsOf(const Trend& trend) {
  Totals totals;
  for (const Series& one : trend.series) {
    if (one.slower) ++totals.slower;
    if (!one.no_time.empty()) ++totals.lost;
    if (!one.failed.empty()) ++totals.failed;
    if (one.nights.size() >= stats::kFewestNights) ++totals.long_enough;
  }
  totals.slow_machines = std::ranges::count(trend.peers, true, &Peer::slow);
  return totals;
}

ExitCode CodeOf(const Trend& trend, const Totals& totals) {
  if (totals.slower > 0 || totals.slow_machines > 0) return ExitCode::kRegression;
  const bool open = totals.long_enough == 0 || totals.lost > 0 || totals.failed > 0 ||
                    !trend.failures.empty() || !trend.notes.empty();
  return open ? ExitCode::kInconclusive : ExitCode::kPass;
}

std::string Counted(std::size_t count, std::string_view one, std::string_view several) {
  return count == 0 ? "" : fmt::format(", {} {}", count, count == 1 ? one : several);
}

std::string ReasonsOf(const Trend& trend, const Totals& totals, const TrendOptions& options) {
  std::string what;
  if (totals.slower > 0) {
    what += fmt::format(", slower within the last {} nights", options.recent_nights);
  }
  what += Counted(static_cast<std::size_t>(totals.slow_machines), "slow machine", "slow machines");
  if (totals.lost > 0) what += fmt::format(", {} without a time now", totals.lost);
  if (totals.failed > 0) what += fmt::format(", {} failed in the newest night", totals.failed);
  what += Counted(trend.failures.size(), "failure of no history", "failures of no history");
  what += Counted(trend.notes.size(), "file passed over", "files passed over");
  what += Counted(trend.absent.size(), "machine launched no more", "machines launched no more");
  if (totals.long_enough == 0) {
    what += fmt::format(", no case has {} nights yet", stats::kFewestNights);
  }
  return what;
}

void Conclude(Trend& trend, const TrendOptions& options) {
  const Totals totals = TotalsOf(trend);
  trend.exit_code = CodeOf(trend, totals);
  std::size_t changes = 0;
  for (const TrendEvent& event : trend.events) changes += event.changes.size();
  trend.headline = fmt::format(
      "{}: {} level change{} in {} night{} of machines, {} histories, {} launches{}",
      trend.exit_code == ExitCode::kPass         ? "PASS"
      : trend.exit_code == ExitCode::kRegression ? "REGRESSION"
                                                 : "INCONCLUSIVE",
      changes, changes == 1 ? "" : "s", trend.events.size(), trend.events.size() == 1 ? "" : "s",
      trend.series.size(), trend.launches, ReasonsOf(trend, totals, options));
}

}  // namespace

double Series::level_ns() const { return std::exp(segments.segments.back().level); }

Trend FindTrend(std::span<const Launch> launches, const TrendOptions& options,
                std::vector<std::string> notes) {
  Trend trend;
  trend.launches = launches.size();
  trend.notes = std::move(notes);
  for (const Launch& launch : launches) {
    if (SecondsOf(launch.started_at)) continue;
    trend.notes.push_back(
        fmt::format("{}: '{}' is no time of a start", launch.path, launch.started_at));
  }
  const Machines machines = FindMachines(launches);
  trend.failures = machines.failures;
  const auto by_machine = NightsByMachine(machines, options.night_gap_seconds);
  trend.absent = AbsentOf(by_machine, options);
  for (const auto& [machine, nights] : by_machine) {
    for (const auto& [key, sightings] : SightingsOf(nights, options.cases)) {
      trend.series.push_back(SeriesOf(machine, key, nights, sightings, options));
    }
    TellFailures(machine, nights, options, trend);
  }
  trend.events = EventsOf(trend.series, options);
  trend.peers = ComparePeers(trend.series, options.peer_min);
  Conclude(trend, options);
  return trend;
}

}  // namespace lockstep::results::compare
