// What befalls whom, and when: decided before a case starts (stress/cases/plan_faults.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stress/faults/fault_registry.h"

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

}  // namespace lockstep::stress::faults
