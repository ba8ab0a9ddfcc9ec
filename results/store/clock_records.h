// The clocks of a launch as a run holds them.
#ifndef LOCKSTEP_RESULTS_STORE_CLOCK_RECORDS_H_
#define LOCKSTEP_RESULTS_STORE_CLOCK_RECORDS_H_

#include "core/launch/host_clocks.h"
#include "results/store/run.h"

namespace lockstep {

// Fills `clocks` and `clock_anchors`; the run has its origin and scale.
void AddClocks(const HostClocks& clocks, Run& run);

}  // namespace lockstep

#endif  // LOCKSTEP_RESULTS_STORE_CLOCK_RECORDS_H_
