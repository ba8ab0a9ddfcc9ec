// How precise the cases of a run are, in words.
#pragma once

#include <string>

#include "results/store/run.h"

namespace lockstep::bench::measure {

// "; 3 of 6 to ±5 %; all 6 take about 50 s: --time-budget=50s": how many cases came to `precision`
// (relative), as their stopped_by says, and about how long a repetition takes until the others do.
// An hour and more is not named. "" where no case has a round.
std::string PrecisionClause(const results::store::Run& run, double precision);

}  // namespace lockstep::bench::measure
