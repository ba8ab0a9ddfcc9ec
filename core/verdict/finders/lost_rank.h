// Ranks that are gone, stopped or failed: facts, not suspicions.
#pragma once

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"
#include "core/verdict/stuck.h"

namespace lockstep::verdict::finders {

// rank_crashed, rank_killed, rank_stopped, rank_exited: proved. A rank that finished in order is a
// culprit only if another waits for it.
std::vector<Finding> FindDepartures(const Situation& situation, const Stuck& stuck);
// rank_failed, or init_failure where it was while connecting: proved by what the ranks themselves
// reported. When all that they report is that somebody did not come, who did not is suspected.
std::vector<Finding> FindErrors(const Situation& situation, const Stuck& stuck);

}  // namespace lockstep::verdict::finders
