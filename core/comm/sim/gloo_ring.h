// gloo's ring among ranks whose calls differ.
#pragma once

#include <vector>

#include "core/comm/sim/fate.h"

namespace lockstep::comm::sim {

// all_reduce and reduce: the pipelined reduce-scatter and (of all_reduce) all-gather of
// gloo/allreduce.cc, `ring`, segment by segment, each rank with the segments that follow from its
// own count. A rank that gets a longer message than it waits for crashes. A reduce's last step (to
// the root) is taken to go well.
std::vector<SimFate> FatesOfGlooRing(const SimCalls& calls);

}  // namespace lockstep::comm::sim
