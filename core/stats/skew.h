// How unevenly the ranks' data loading goes, and what the others pay for it. Pure.
#pragma once

#include <span>
#include <vector>

namespace lockstep::stats {

// The load times of one rank, in the unit of the input.
struct RankSkew {
  double p50 = 0;
  double p99 = 0;  // NaN when there are too few iterations for it
  double mean = 0;
  // Sum over iterations of how much longer the slowest rank took: what this rank spends waiting in
  // the collective that follows, when every iteration ends in one.
  double waited = 0;
};

struct Skew {
  std::vector<RankSkew> ranks;
  // Largest over average of the ranks' mean load times: 1 when they are even, W when one rank has
  // all the work. NaN when nothing took any time.
  double imbalance = 1;
  int slowest_rank = 0;  // of the largest mean; the lowest such rank
  // Average over ranks of `waited`, relative to the time of all iterations when each takes as long
  // as its slowest rank: the part of the ranks' time that is spent waiting. NaN likewise.
  double waiting_fraction = 0;
};

// `load_times`: iterations x ranks, row = iteration; at least one row; finite, not negative.
Skew MeasureSkew(std::span<const double> load_times, int ranks);

}  // namespace lockstep::stats
