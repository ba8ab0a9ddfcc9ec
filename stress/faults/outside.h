// The faults that an agent applies to its worker (core/agent/agent_faults.h).
#pragma once

#include <vector>

#include "core/control/facts.h"
#include "stress/faults/fault_plan.h"

namespace lockstep::stress::faults {

// The order, of a fault that is by an agent.
control::AgentFault OrderFor(const PlannedFault& fault);

// What the workers must be started with, so that the faults can befall them: one a rank.
std::vector<control::WorkerSetup> SetupsFor(const std::vector<PlannedFault>& faults, int ranks);

}  // namespace lockstep::stress::faults
