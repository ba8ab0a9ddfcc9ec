// What something costs that can be left out: the same work with and without it, in pairs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/stats/stats.h"

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
  std::vector<double> ratios;  // of each pair: with over without
  double without_ns = 0;       // median
  double with_ns = 0;
};

// A batch of each side a pair, in an order that is drawn from the seed, so that neither drift nor
// what the first one leaves behind favours a side. One batch of each comes before and is not told.
Result<PairedTimes> MeasurePairs(PairSide& without, PairSide& with, const PairPlan& plan);

// As many works as take `batch_seconds`, and as many pairs as fit into `seconds`, if one takes
// `work_ns`.
PairPlan PlanPairs(double work_ns, double seconds, double batch_seconds);

enum class CostVerdict { kWithin, kBeyond, kUnclear };
std::string_view NameOf(CostVerdict verdict);

struct Cost {
  stats::MedianInterval ratio;
  CostVerdict verdict = CostVerdict::kUnclear;
};

// Below this half width of the interval "nothing can be measured" says something.
inline constexpr double kMeasurable = 0.01;

// `most`: the part of the time that it may cost: kBeyond when the whole interval lies above,
// kWithin when it lies below. 0: it must not be measurable: kBeyond when the interval lies above 1,
// kWithin when it does not and is narrow enough to have shown it. `confidence` of the interval.
Cost JudgeCost(std::span<const double> ratios, double most, double confidence);

}  // namespace lockstep::bench::marks
