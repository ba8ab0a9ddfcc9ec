// Different operations in the same position of a communicator.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// collective_mismatch and the like: proved.
std::vector<Finding> DescribeMismatches(const Situation& situation,
                                        const std::vector<Mismatch>& mismatches);

}  // namespace lockstep::verdict::finders
