// Runs written out, for tests of reports.
#pragma once

#include "results/store/run.h"

namespace lockstep::results::report {

// Two sizes of all_reduce out of place and in place, a barrier, and a bucket sequence; all well.
store::Run PassingRun();

// The same, where rank 1 was killed in the second size and left the rest without samples.
store::Run FailingRun();

// A training step with two settings: parts, an effect and a recommendation; all well.
store::Run StepsRun();

// Links between four ranks on four hosts, of which one is slow.
store::Run LinksRun();

// A program of two ranks that was watched: rank 1 comes late to an all_reduce.
store::Run WatchedRun();

// One case with two wrong elements.
store::Run CorruptRun();

// The passing run, ended early: one case is measured, one in part, three not at all.
store::Run InterruptedRun();

// A run of stress with eight ranks: in two of three cases rank 6 hangs and the others wait, all of
// them in one place.
store::Run HangingRun();

}  // namespace lockstep::results::report
