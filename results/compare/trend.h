// The history of every case over nights: when it changed, what changed with it, which nights were
// outliers, and which machine is slow beside its peers. Values in, findings out. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/stats/change_points.h"
#include "results/compare/environment.h"
#include "results/compare/figures.h"

namespace lockstep::results::compare {

struct TrendOptions {
  double night_gap_seconds = 4 * 3600;  // launches farther apart belong to different nights
  std::size_t recent_nights = 7;        // a slower level that began in them is a regression
  double change_min = 0.02;             // of a change point
  double peer_min = 0.05;               // of a slow machine
  std::string cases = "*";              // a glob
};

struct Night {
  std::string when;      // start of its first launch, UTC
  double median_ns = 0;  // of its launches' medians
  std::size_t launches = 0;
};

struct LevelChange {
  std::size_t night = 0;  // the first one of the new level
  double before_ns = 0, after_ns = 0;
  double effect = 0;                                // 0.1: 10 % slower
  std::size_t nights_before = 0, nights_since = 0;  // of the two levels
  std::vector<Difference> differences;  // facts that changed with it, between the two levels
};

// A case on a machine.
struct Series {
  std::string machine;  // its host names
  std::string program, name, backend;
  int ranks = 0;
  std::vector<Night> nights;
  stats::Segments segments;  // of the logarithms
  std::vector<LevelChange> changes;
  // From the first level that it left recently and that is quicker than the one now: a later
  // change for the better hides no larger one for the worse.
  std::optional<LevelChange> slower;
  std::string no_time;   // why the machine's newest nights have no time of it; "" where they have
  std::string failed;    // of launches in the newest night, though others have a time; "" likewise
  std::string left_out;  // since when they were not to have one; "" likewise
  double level_ns() const;  // now
};

// Changes of one machine that began in the same night.
struct TrendEvent {
  std::string machine, when;
  std::vector<std::pair<std::size_t, std::size_t>> changes;  // index of the series, of its change
  std::size_t cases = 0;                                     // that were measured in that night
  double effect = 0;                                         // median over the changes
  bool recent = false;
  std::vector<Difference> differences;
};

// A machine beside the others that measure the same cases.
struct Peer {
  std::string machine;
  std::size_t machines = 0, cases = 0;
  double excess = 0;  // median over cases of its time over the median of the others, less 1
  double limit = 0;  // of a slow machine: peer_min, or four deviations of the fleet if that is more
  std::size_t cases_slow = 0;  // whose own excess is above such a limit of the case
  bool slow = false;
  std::string worst_case;
  double worst_excess = 0;
  std::string why;  // of a slow machine
};

struct Trend {
  std::vector<Series> series;
  std::vector<TrendEvent> events;  // newest first
  std::vector<Peer> peers;  // slow ones first, then by excess; empty with fewer than three machines
  std::vector<std::string>
      absent;  // machines that are launched no more, and since when; a line each
  std::size_t launches = 0;
  std::vector<std::string> failures;  // of no history (machines.h, absence.h)
  std::vector<std::string> notes;     // files that were not read, or do not say when
  std::string headline;
  // 5: slower than a level that was left recently, or a slow machine; 3: no case has kFewestNights
  // nights, or one lost its times or failed in the newest night, or there are failures or notes.
  ExitCode exit_code = ExitCode::kInconclusive;
};

inline constexpr std::size_t kFewestMachines = 3;

Trend FindTrend(std::span<const Launch> launches, const TrendOptions& options,
                std::vector<std::string> notes = {});

// Machines that measure the same cases, beside each other.
// By the newest level of every case that at least kFewestMachines machines measure, each in
// kFewestLaunches launches of that level, and still do. Slow: the
// excess, a median over cases, is above `peer_min` and above four standard deviations of the other
// machines' excesses (from their median absolute deviation), so that a fleet of uneven machines
// has no slow one. Or so in a quarter of its cases, two at least, each by its own limit, which
// is at least twice `peer_min`: a link that lost half of its lanes is seen in large messages only.
std::vector<Peer> ComparePeers(std::span<const Series> series, double peer_min);

// The headline, level changes (newest first) with what changed with them, cases that lost their
// times, slow machines, the newest outliers, then a line a history with a small curve.
std::string FormatTrendTable(const Trend& trend);
std::string FormatTrendMarkdown(const Trend& trend);
// One object with every night of every history; what is not a number is null.
std::string FormatTrendJson(const Trend& trend);
// A test a history, one a machine, one a file that was not read, and one for the whole. Failures
// are what makes the exit code 5; a history that is too short is skipped.
std::string FormatTrendJUnit(const Trend& trend);

}  // namespace lockstep::results::compare
