// The faults that an agent applies to its worker (core/launch/agent_faults.h).
#ifndef LOCKSTEP_STRESS_FAULTS_OUTSIDE_H_
#define LOCKSTEP_STRESS_FAULTS_OUTSIDE_H_

#include <vector>

#include "core/launch/agent_faults.h"
#include "core/launch/worker_setup.h"
#include "stress/faults/fault_plan.h"

namespace lockstep::stress::faults {

// The order, of a fault that is by an agent.
launch::AgentFault OrderFor(const PlannedFault& fault);

// What the workers must be started with, so that the faults can befall them: one a rank.
std::vector<launch::WorkerSetup> SetupsFor(const std::vector<PlannedFault>& faults, int ranks);

}  // namespace lockstep::stress::faults

#endif  // LOCKSTEP_STRESS_FAULTS_OUTSIDE_H_
