// Runs written out, for tests of reports.
#ifndef LOCKSTEP_RESULTS_REPORT_LITERAL_RUN_H_
#define LOCKSTEP_RESULTS_REPORT_LITERAL_RUN_H_

#include "results/store/run.h"

namespace lockstep {

// Two sizes of all_reduce out of place and in place, a barrier, and a bucket sequence; all well.
Run PassingRun();

// The same, where rank 1 was killed in the second size and left the rest without samples.
Run FailingRun();

// A training step with two settings: parts, an effect and a recommendation; all well.
Run StepsRun();

// Links between four ranks on four hosts, of which one is slow.
Run LinksRun();

// One case with two wrong elements.
Run CorruptRun();

}  // namespace lockstep

#endif  // LOCKSTEP_RESULTS_REPORT_LITERAL_RUN_H_
