// The scenarios of a stored run, read again from its plan: with them its cases can be judged again.
#ifndef LOCKSTEP_STRESS_HARNESS_STORED_SCENARIOS_H_
#define LOCKSTEP_STRESS_HARNESS_STORED_SCENARIOS_H_

#include <optional>
#include <vector>

#include "results/store/run.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::harness {

// One a case of the run; none where the plan lacks it, or has it in words of another version.
std::vector<std::optional<scenario::Scenario>> ScenariosOf(const results::store::Run& run);

}  // namespace lockstep::stress::harness

#endif  // LOCKSTEP_STRESS_HARNESS_STORED_SCENARIOS_H_
