// What becomes of calls that meet: data where they agree, and what the rules say where they differ.
// Pure functions of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Two algorithms step by step, among ranks whose calls differ. gloo's ring, of all_reduce and
// reduce: the pipelined reduce-scatter and (of all_reduce) all-gather of gloo/allreduce.cc, `ring`,
// segment by segment, each rank with the segments that follow from its own count. A rank that gets
// a longer message than it waits for crashes. A reduce's last step (to the root) is taken to go
// well.
std::vector<SimFate> FatesOfGlooRing(const SimCalls& calls);

// Open MPI's small all-reduce, as coll_base_allreduce.c,
// ompi_coll_base_allreduce_intra_recursivedoubling: each rank exchanges with its partners what its
// own count, type and reduction give. A rank that gets a longer message than it waits for returns
// MPI_ERR_TRUNCATE and takes no further part; messages above `eager_bytes` wait for their receive.
std::vector<SimFate> FatesOfRecursiveDoubling(const SimCalls& calls, std::int64_t eager_bytes);

}  // namespace lockstep::comm::sim
