// The run as an agent that takes over a lost coordinator knows it.
#pragma once

#include <functional>

#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"

namespace lockstep::bench::harness {

// Fills in a new run, which was to repeat the plan `repetitions` times: it is incomplete, times of
// lost ranks are absent, and medians are over those that are left. `judge` adds to the run what its
// kind makes of all that is left.
void ConcludeAfter(const coordinator::FailoverReport& failover, const plan::Plan& plan,
                   int repetitions, const control::LaunchContext& context, results::store::Run& run,
                   const std::function<void(const measure::SampleBook&)>& judge);

}  // namespace lockstep::bench::harness
