// How FindChangePoints works, and why.
//
// Two guards, because a nightly history is looked at every morning for hundreds of cases:
//
// 1. Segments are those of least cost: of a night, its squared distance from the segment's level in
//    units of the noise, but never more than kCap^2; of a change, kPenalty. The cap (the "biweight"
//    loss of Fearnhead and Rigaill 2019, "Changepoint detection in the presence of outliers") makes
//    one bad night an outlier and no change. As kCap^2 < kPenalty < 2 kCap^2 and 2 kPenalty <
//    3 kCap^2, a level at the end of the series needs two nights, one in the middle (two changes)
//    three.
//    The minimum is exact over a grid of levels: all values and the means of neighbours.
// 2. Each change is then tested against chance, as E-divisive does (Matteson and James 2014, "A
//    nonparametric approach for multiple change point analysis"; used for benchmarks by Daly et al.
//    2020, "The use of change point detection to identify software performance regressions in a
//    continuous integration system"): of each segment, as an excursion from the neighbour whose
//    level is nearer, in a series without other changes. The nights are shuffled, and the segment
//    stays if at most 1 % of the shuffles gain as much by changes. Two modes that alternate give a
//    run of slow nights now and then; so do their shuffles.
//
// The noise is the largest of the medians of |x(i+k) - x(i)|, k = 1..3, scaled to the deviation of
// normal noise: few of these differences span a change. k > 1 because neighbouring nights are alike
// when the machine drifts.
#include "core/stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/check.h"
#include "core/base/random.h"
#include "core/stats/stats.h"

namespace lockstep::stats {
namespace {

constexpr double kCap = 3;
constexpr double kPenalty = 12.5;
constexpr int kShuffles = 499;
constexpr int kShufflesAsGood = 4;         // at most, beside the series itself: p <= 0.01
constexpr std::uint64_t kSeed = 20140318;  // any; the same series gives the same answer

double NoiseOf(std::span<const double> values) {
  constexpr double kNormal = 1.4826 / std::numbers::sqrt2;  // median |difference| -> deviation
  double noise = 0;
  for (std::size_t lag = 1; lag <= 3; ++lag) {
    std::vector<double> steps;
    for (std::size_t i = lag; i < values.size(); ++i) {
      steps.push_back(std::abs(values[i] - values[i - lag]));
    }
    noise = std::max(noise, kNormal * Median(steps));
  }
  return noise;
}

std::vector<double> GridOf(std::span<const double> values) {
  std::vector<double> grid(values.begin(), values.end());
  for (std::size_t i = 1; i < values.size(); ++i) grid.push_back((values[i - 1] + values[i]) / 2);
  std::ranges::sort(grid);
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

std::vector<double> InUnitsOf(double noise, std::vector<double> values) {
  for (double& value : values) value /= noise;
  return values;
}

// Value and level in units of the noise, as in all below.
double Loss(double value, double level) {
  const double distance = value - level;
  return std::min(distance * distance, kCap * kCap);
}

// The first nights of all segments but the first, for the least cost.
std::vector<std::size_t> CheapestChanges(std::span<const double> values) {
  const std::vector<double> grid = GridOf(values);
  std::vector<double> cost(grid.size(), 0);  // so far, when the last segment has this level
  // began[i][g]: where the segment of night i at level g began.
  std::vector<std::vector<std::size_t>> began(values.size(), std::vector<std::size_t>(grid.size()));
  std::vector<std::size_t> best_level(values.size());  // after each night
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double changed = i == 0 ? 0 : cost[best_level[i - 1]] + kPenalty;
    for (std::size_t g = 0; g < grid.size(); ++g) {
      const bool change = i > 0 && changed < cost[g];
      began[i][g] = i == 0 || change ? i : began[i - 1][g];
      cost[g] = (change ? changed : cost[g]) + Loss(values[i], grid[g]);
    }
    const auto best = std::ranges::min_element(cost);
    best_level[i] = static_cast<std::size_t>(best - cost.begin());
  }
  std::vector<std::size_t> changes;
  for (std::size_t end = values.size(); end > 0;) {
    const std::size_t first = began[end - 1][best_level[end - 1]];
    if (first > 0) changes.push_back(first);
    end = first;
  }
  std::ranges::reverse(changes);
  return changes;
}

// Of the values when their level may change as often as it pays.
double CostWithChanges(std::span<const double> values, std::span<const double> grid) {
  std::vector<double> cost(grid.size(), 0);
  double changed = 0;  // cost so far and of a change
  for (const double value : values) {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t g = 0; g < grid.size(); ++g) {
      cost[g] = std::min(cost[g], changed) + Loss(value, grid[g]);
      best = std::min(best, cost[g]);
    }
    changed = best + kPenalty;
  }
  return changed - kPenalty;
}

// Without a change the shuffled values cost what the values do, so the costs with changes tell
// which gain more.
bool BeatsShuffles(std::span<const double> values) {
  const std::vector<double> grid = GridOf(values);
  const double cost = CostWithChanges(values, grid);
  std::vector<double> shuffled(values.begin(), values.end());
  Random random(kSeed);
  int as_good = 0;
  for (int i = 0; i < kShuffles && as_good <= kShufflesAsGood; ++i) {
    random.Shuffle(shuffled);
    if (CostWithChanges(shuffled, grid) <= cost) ++as_good;
  }
  return as_good <= kShufflesAsGood;
}

std::vector<LevelSegment> SegmentsBetween(std::span<const double> values,
                                          const std::vector<std::size_t>& changes) {
  std::vector<LevelSegment> segments;
  for (std::size_t i = 0; i <= changes.size(); ++i) {
    LevelSegment segment;
    segment.first = i == 0 ? 0 : changes[i - 1];
    segment.last = (i == changes.size() ? values.size() : changes[i]) - 1;
    segment.level = Median(values.subspan(segment.first, segment.last - segment.first + 1));
    segments.push_back(segment);
  }
  return segments;
}

// A segment and the change (its index) between it and the neighbour whose level is nearer.
struct Excursion {
  std::size_t segment = 0;
  std::size_t change = 0;
  double step = 0;
};

Excursion ExcursionOf(const std::vector<LevelSegment>& segments, std::size_t i) {
  Excursion nearest{i, 0, std::numeric_limits<double>::infinity()};
  for (const std::size_t change : {i - 1, i}) {  // i - 1 wraps for the first segment
    if (change >= segments.size() - 1) continue;
    const double step = segments[change + 1].level - segments[change].level;
    if (std::abs(step) < std::abs(nearest.step)) {
      nearest.change = change;
      nearest.step = change < i ? step : -step;
    }
  }
  return nearest;
}

// The series if all segments but this had one level.
std::vector<double> WithOneExcursion(std::span<const double> values,
                                     const std::vector<LevelSegment>& segments,
                                     const Excursion& excursion) {
  std::vector<double> one(values.begin(), values.end());
  for (const LevelSegment& segment : segments) {
    for (std::size_t i = segment.first; i <= segment.last; ++i) one[i] -= segment.level;
  }
  const LevelSegment& away = segments[excursion.segment];
  for (std::size_t i = away.first; i <= away.last; ++i) one[i] += excursion.step;
  return one;
}

// The change that is not worth keeping, or changes.size(): all are. Smallest steps go first, so
// that what is left is tested with longer segments.
std::size_t ChangeToDrop(std::span<const double> values, const std::vector<std::size_t>& changes,
                         double noise, double change_min) {
  const std::vector<LevelSegment> segments = SegmentsBetween(values, changes);
  std::vector<Excursion> excursions;
  for (std::size_t i = 0; i < segments.size(); ++i) excursions.push_back(ExcursionOf(segments, i));
  std::ranges::sort(excursions, [](const Excursion& a, const Excursion& b) {
    return std::abs(a.step) < std::abs(b.step);
  });
  for (const Excursion& excursion : excursions) {
    if (std::abs(excursion.step) < change_min ||
        !BeatsShuffles(InUnitsOf(noise, WithOneExcursion(values, segments, excursion)))) {
      return excursion.change;
    }
  }
  return changes.size();
}

}  // namespace

Segments FindChangePoints(std::span<const double> values, const ChangeOptions& options) {
  LOCKSTEP_CHECK(!values.empty(), "a history has a night");
  Segments found;
  if (values.size() < kFewestNights) {
    found.segments = SegmentsBetween(values, {});
    return found;
  }
  found.noise = std::max(NoiseOf(values), options.noise_min);
  std::vector<std::size_t> changes =
      CheapestChanges(InUnitsOf(found.noise, {values.begin(), values.end()}));
  while (!changes.empty()) {
    const std::size_t drop = ChangeToDrop(values, changes, found.noise, options.change_min);
    if (drop == changes.size()) break;
    changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(drop));
  }
  found.segments = SegmentsBetween(values, changes);
  for (const LevelSegment& segment : found.segments) {
    for (std::size_t i = segment.first; i <= segment.last; ++i) {
      if (std::abs(values[i] - segment.level) > kCap * found.noise) found.outliers.push_back(i);
    }
  }
  return found;
}

}  // namespace lockstep::stats
