// What befalls whom, and when: decided before a case starts, from the scenario and its seed.
#ifndef LOCKSTEP_STRESS_FAULTS_FAULT_PLAN_H_
#define LOCKSTEP_STRESS_FAULTS_FAULT_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stress/faults/fault_registry.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::faults {

struct PlannedFault {
  FaultKind kind = FaultKind::kKill;
  int rank = 0;
  FaultMoment moment;
  std::optional<double> duration_seconds;
  std::map<std::string, double> amounts = {};  // as in FaultSpec
  std::vector<std::string> variables = {};     // as in FaultSpec
};
// "kill of rank 1 at iteration:3"
std::string Describe(const PlannedFault& fault);

// One entry a fault and rank, in the file's order. Moments that are `random` are drawn from `seed`.
std::vector<PlannedFault> PlanFaults(const scenario::Scenario& scenario, std::uint64_t seed);

}  // namespace lockstep::stress::faults

#endif  // LOCKSTEP_STRESS_FAULTS_FAULT_PLAN_H_
