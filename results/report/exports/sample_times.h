// The samples of a case as durations.
#ifndef LOCKSTEP_RESULTS_REPORT_EXPORTS_SAMPLE_TIMES_H_
#define LOCKSTEP_RESULTS_REPORT_EXPORTS_SAMPLE_TIMES_H_

#include <vector>

#include "results/store/run.h"

namespace lockstep::results::report::exports {

// Nanoseconds of the slowest rank in each iteration that all ranks completed.
std::vector<double> SlowestNs(const store::Samples& samples);

// Their sum: how long the case was measured; 0 without samples.
double MeasuredNs(const store::Samples& samples);

}  // namespace lockstep::results::report::exports

#endif  // LOCKSTEP_RESULTS_REPORT_EXPORTS_SAMPLE_TIMES_H_
