// Test material: a plan of all-reduces of 8 bytes and more, each twice as large as the one before.
#pragma once

#include <fmt/core.h>

#include "bench/plan/plan.h"

namespace lockstep::bench::plan {

inline Plan Doubling(const BenchSpec& spec, int ranks, int cases) {
  Plan plan = PlanWithoutCases(spec, ranks).value();
  for (int i = 0; i < cases; ++i) {
    collective::Operation operation;
    operation.collective = collective::Collective::kAllReduce;
    operation.count = 2 << i;
    plan.cases.push_back(
        {fmt::format("all_reduce/f32/sum/{}", 8 << i), {operation}, false, "", -1, 0});
  }
  return plan;
}

}  // namespace lockstep::bench::plan
