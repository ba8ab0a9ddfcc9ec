// What the columns of the console table mean, and what the limit is made of.
#ifndef LOCKSTEP_RESULTS_REPORT_LEGEND_H_
#define LOCKSTEP_RESULTS_REPORT_LEGEND_H_

#include <string>

#include "results/report/report.h"
#include "results/store/run.h"

namespace lockstep::results::report {

// Lines within kNarrow characters, about columns that the table has; with all columns also every
// figure of the host.
std::string FormatLegend(const store::Run& run, Columns columns);

}  // namespace lockstep::results::report

#endif  // LOCKSTEP_RESULTS_REPORT_LEGEND_H_
