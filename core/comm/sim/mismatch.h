// What becomes of calls that meet: data where they agree, and what the rules say where they differ.
// Pure functions of the calls.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/comm/sim/fate.h"
#include "core/comm/sim/rules.h"

namespace lockstep::comm::sim {

// By rank. All of the group are here, with the same call of a collective that needs everybody:
// all_reduce, all_gather, reduce_scatter, barrier, and kGloo's reduce.
std::vector<SimFate> FatesOfEqual(const SimCalls& calls);

// The same, when their counts, types, reductions or roots differ.
std::vector<SimFate> FatesOfDifferent(SimRules rules, const SimCalls& calls);

// Of the root of a reduce when all sends that it sees are there (`held`). Ranks that are not here
// (nullptr) took no part.
SimFate FateOfRoot(SimRules rules, const SimCall& root, const SimCalls& calls);

// A message for a call that waits for one.
SimFate FateOfMessage(SimRules rules, const SimCall& call,
                      const std::shared_ptr<const std::vector<std::byte>>& sent);

}  // namespace lockstep::comm::sim
