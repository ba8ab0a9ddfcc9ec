// Ranks that make the others wait although everything goes on.
#pragma once

#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict::finders {

// Ranks whose own work between collectives takes more than twice that of the median rank and
// lengthens all ranks' period by a fifth or more. No failure, and never a hang: such a rank
// progresses. Counts ticks of one rank only, so that clocks need not agree.
std::vector<Finding> FindSlowRanks(const std::vector<RankEvidence>& evidence);

}  // namespace lockstep::verdict::finders
