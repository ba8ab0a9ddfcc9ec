// The faults of a case, from the scenario and its seed.
#pragma once

#include <cstdint>
#include <vector>

#include "stress/faults/fault_plan.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::cases {

// One entry a fault and rank, in the file's order. Moments that are `random` are drawn from `seed`.
std::vector<faults::PlannedFault> PlanFaults(const scenario::Scenario& scenario,
                                             std::uint64_t seed);

}  // namespace lockstep::stress::cases
