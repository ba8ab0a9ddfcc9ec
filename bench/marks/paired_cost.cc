// The cost of one side over the other, from pairs of batches that follow each other.
#include "bench/marks/paired_cost.h"

#include <algorithm>
#include <utility>

#include "core/base/random.h"
#include "core/stats/stats.h"

namespace lockstep::bench::marks {
namespace {

constexpr int kFewestPairs = 40;  // fewer give no interval
constexpr int kMostPairs = 1000;
constexpr int kMostWorks = 500;

}  // namespace

Result<PairedTimes> MeasurePairs(PairSide& without, PairSide& with, const PairPlan& plan) {
  Random random(plan.seed);
  LOCKSTEP_RETURN_IF_ERROR(without.Run(plan.batch).status());
  LOCKSTEP_RETURN_IF_ERROR(with.Run(plan.batch).status());
  PairedTimes times;
  std::vector<double> without_ns;
  std::vector<double> with_ns;
  for (int pair = 0; pair < plan.pairs; ++pair) {
    const bool turned = random.Below(2) == 1;
    PairSide& first = turned ? with : without;
    PairSide& second = turned ? without : with;
    LOCKSTEP_ASSIGN_OR_RETURN(double off, first.Run(plan.batch));
    LOCKSTEP_ASSIGN_OR_RETURN(double on, second.Run(plan.batch));
    if (turned) std::swap(off, on);
    without_ns.push_back(off);
    with_ns.push_back(on);
    times.added_ns.push_back(on - off);
    if (off > 0) times.ratios.push_back(on / off);
  }
  if (times.ratios.empty()) return SystemFailed("no pair took any time that a clock shows");
  times.without_ns = stats::Median(without_ns);
  times.with_ns = stats::Median(with_ns);
  return times;
}

PairPlan PlanPairs(double work_ns, double seconds, double batch_seconds) {
  PairPlan plan;
  const double works = batch_seconds * 1e9 / std::max(work_ns, 1.0);
  plan.batch = static_cast<int>(std::clamp(works, 1.0, static_cast<double>(kMostWorks)));
  const double pairs = seconds * 1e9 / (2 * plan.batch * std::max(work_ns, 1.0));
  plan.pairs = static_cast<int>(
      std::clamp(pairs, static_cast<double>(kFewestPairs), static_cast<double>(kMostPairs)));
  return plan;
}

}  // namespace lockstep::bench::marks
