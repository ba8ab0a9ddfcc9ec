// Ranks of which nothing but silence is known.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// rank_busy, transport_stall, init_failure, unknown: suspected, all evidence is silence beyond the
// deadline.
std::vector<Finding> FindSilence(const Situation& situation);

}  // namespace lockstep::verdict::finders
