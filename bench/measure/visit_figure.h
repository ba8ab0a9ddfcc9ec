// What a visit of a case counts as: one value of its iterations. Pure.
#pragma once

#include <numeric>
#include <vector>

#include "bench/plan/plan.h"
#include "core/stats/stats.h"

namespace lockstep::bench::measure {

// Where iterations are not alike, a median would see one kind of them only.
inline bool CountsByMean(const plan::PlannedCase& planned) { return planned.visit_iterations > 0; }

// At least one value, all finite.
inline double FigureOfVisit(bool by_mean, const std::vector<double>& values) {
  if (!by_mean) return stats::Median(values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace lockstep::bench::measure
