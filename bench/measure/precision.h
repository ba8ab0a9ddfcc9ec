// How precise the cases of a run are, in words.
#ifndef LOCKSTEP_BENCH_MEASURE_PRECISION_H_
#define LOCKSTEP_BENCH_MEASURE_PRECISION_H_

#include <string>

#include "results/store/run.h"

namespace lockstep::bench::measure {

// "; 3 of 6 to 5 %, all with --time-budget=50s": how many intervals of the rounds have a half width
// of at most `precision` (relative), and about how long the others take. An hour and more is not
// named. "" where no case has a round. `drift` is what the summaries' intervals hold besides.
std::string PrecisionClause(const results::store::Run& run, double precision, double drift);

}  // namespace lockstep::bench::measure

#endif  // LOCKSTEP_BENCH_MEASURE_PRECISION_H_
