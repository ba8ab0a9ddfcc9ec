// What the columns of the console table mean, and what the limit is made of.
#pragma once

#include <string>

#include "results/report/report.h"
#include "results/store/run.h"

namespace lockstep::results::report {

// Lines within kNarrow characters, about columns that the table has; with all columns also every
// figure of the host.
std::string FormatLegend(const store::Run& run, Columns columns);

}  // namespace lockstep::results::report
