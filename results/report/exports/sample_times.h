// The samples of a case as durations.
#pragma once

#include <vector>

#include "results/store/run.h"

namespace lockstep::results::report::exports {

// Nanoseconds of the slowest rank in each iteration that all ranks completed.
std::vector<double> SlowestNs(const store::Samples& samples);

// Their sum: how long the case was measured; 0 without samples.
double MeasuredNs(const store::Samples& samples);

}  // namespace lockstep::results::report::exports
