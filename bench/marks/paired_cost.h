// What something costs that can be left out: the same work with and without it, in pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"

namespace lockstep::bench::marks {

class PairSide {
 public:
  virtual ~PairSide() = default;
  // Does the work so many times, one after the other: the median time of one, in ns.
  virtual Result<double> Run(int times) = 0;
};

struct PairPlan {
  int pairs = 0;
  int batch = 0;  // works of each side in a pair
  std::uint64_t seed = 1;
};

struct PairedTimes {
  std::vector<double> added_ns;  // of each pair: with less without
  std::vector<double> ratios;    // of each pair whose `without` took any time: with over without
  double without_ns = 0;         // median
  double with_ns = 0;
};

// A batch of each side a pair, in an order that is drawn from the seed, so that neither drift nor
// what the first one leaves behind favours a side. One batch of each comes before and is not told.
Result<PairedTimes> MeasurePairs(PairSide& without, PairSide& with, const PairPlan& plan);

// As many works as take `batch_seconds`, and as many pairs as fit into `seconds`, if one takes
// `work_ns`.
PairPlan PlanPairs(double work_ns, double seconds, double batch_seconds);

}  // namespace lockstep::bench::marks
