// Ranks whose results a check found wrong.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// data_corruption: proved by a check of the results.
std::vector<Finding> FindWrongData(const Situation& situation);

}  // namespace lockstep::verdict::finders
