// The clocks of a launch as a run holds them.
#pragma once

#include "core/coordinator/host_clocks.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// Fills `clocks` and `clock_anchors`; the run has its origin and scale.
void AddClocks(const coordinator::HostClocks& clocks, Run& run);

}  // namespace lockstep::results::store
