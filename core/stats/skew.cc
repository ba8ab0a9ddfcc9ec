// Plain sums over the matrix of load times. A rank's waiting is the slowest rank's time less its
// own, in each iteration.
#include "core/stats/skew.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/base/check.h"
#include "core/stats/stats.h"

namespace lockstep::stats {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Column `rank`, and how long the rank waits for `slowest`.
RankSkew OfRank(std::span<const double> load_times, std::span<const double> slowest,
                std::size_t ranks, std::size_t rank) {
  std::vector<double> own(slowest.size());
  RankSkew skew;
  double total = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i] = load_times[i * ranks + rank];
    total += own[i];
    skew.waited += slowest[i] - own[i];
  }
  skew.p50 = Median(own);
  skew.p99 = QuantileIsSupported(own.size(), 0.99) ? Quantile(own, 0.99) : kNan;
  skew.mean = total / static_cast<double>(own.size());
  return skew;
}

}  // namespace

Skew MeasureSkew(std::span<const double> load_times, int ranks) {
  LOCKSTEP_CHECK(
      ranks > 0 && !load_times.empty() && load_times.size() % static_cast<std::size_t>(ranks) == 0,
      "load times are iterations x ranks");
  const auto width = static_cast<std::size_t>(ranks);
  std::vector<double> slowest(load_times.size() / width);
  double whole = 0;
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    slowest[i] = *std::ranges::max_element(load_times.subspan(i * width, width));
    whole += slowest[i];
  }
  Skew skew;
  double means = 0;
  double waited = 0;
  for (std::size_t rank = 0; rank < width; ++rank) {
    skew.ranks.push_back(OfRank(load_times, slowest, width, rank));
    means += skew.ranks.back().mean;
    waited += skew.ranks.back().waited;
    if (skew.ranks.back().mean > skew.ranks[static_cast<std::size_t>(skew.slowest_rank)].mean) {
      skew.slowest_rank = static_cast<int>(rank);
    }
  }
  const double largest = skew.ranks[static_cast<std::size_t>(skew.slowest_rank)].mean;
  skew.imbalance = means > 0 ? largest / (means / ranks) : kNan;
  skew.waiting_fraction = whole > 0 ? waited / ranks / whole : kNan;
  return skew;
}

}  // namespace lockstep::stats
