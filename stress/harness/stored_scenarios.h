// The scenarios of a stored run, read again from its plan: with them its cases can be judged again.
#pragma once

#include <optional>
#include <vector>

#include "results/store/run.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::harness {

// One a case of the run; none where the plan lacks it, or has it in words of another version.
std::vector<std::optional<scenario::Scenario>> ScenariosOf(const results::store::Run& run);

}  // namespace lockstep::stress::harness
