// Agents that do not answer.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// unknown: agents that do not answer.
std::vector<Finding> FindLost(const Situation& situation);

}  // namespace lockstep::verdict::finders
