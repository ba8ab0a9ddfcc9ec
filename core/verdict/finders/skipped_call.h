// Ranks that ended their program in order although others call what they never called.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// By view: it finished in order, and what others call it never called; not where that is what most
// ranks of the communicator did.
std::vector<bool> FindMissed(const Situation& situation);
// collective_mismatch: a minority calls what most ranks of the communicator, which finished in
// order, never called. Proved.
std::vector<Finding> FindSurplus(const Situation& situation);

}  // namespace lockstep::verdict::finders
