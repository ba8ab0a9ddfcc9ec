// Communicators that ranks use in different orders.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// order_inversion: proved where a rank that waits can enter nothing else; otherwise suspected when
// all of the ring are silent beyond the deadline.
std::vector<Finding> FindInversion(const Situation& situation,
                                   const std::vector<Mismatch>& mismatches);

}  // namespace lockstep::verdict::finders
