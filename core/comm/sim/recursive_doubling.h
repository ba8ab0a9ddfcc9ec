// Open MPI's small all-reduce among ranks whose calls differ.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm/sim/fate.h"

namespace lockstep::comm::sim {

// As coll_base_allreduce.c, ompi_coll_base_allreduce_intra_recursivedoubling: each rank exchanges
// with its partners what its own count, type and reduction give. A rank that gets a longer message
// than it waits for returns MPI_ERR_TRUNCATE and takes no further part; messages above
// `eager_bytes` wait for their receive.
std::vector<SimFate> FatesOfRecursiveDoubling(const SimCalls& calls, std::int64_t eager_bytes);

}  // namespace lockstep::comm::sim
