// Cases whose iterations have parts: training steps, loads; and what their options do.
#ifndef LOCKSTEP_RESULTS_REPORT_STEPS_H_
#define LOCKSTEP_RESULTS_REPORT_STEPS_H_

#include <cstddef>
#include <string>

#include "results/report/grid.h"
#include "results/store/run.h"

namespace lockstep::results::report {

// A row for each case with parts, a column for each part; names without their first `skip`
// characters. Empty when no case has parts.
Grid StepGrid(const store::Run& run, std::size_t skip);
// How ranks become one value, part by part; "" when no case has parts.
std::string StepLegend(const store::Run& run);
// How unevenly the ranks of cases with a part load_ns load, and what it costs; "" without any.
std::string FormatSkew(const store::Run& run);
// "bucket_cap_mb=10 instead of 25: takes 0.76 times as long …" for each effect, then the
// recommendation; "" without.
std::string FormatEffects(const store::Run& run);

}  // namespace lockstep::results::report

#endif  // LOCKSTEP_RESULTS_REPORT_STEPS_H_
