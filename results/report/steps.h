// Cases whose iterations have parts: training steps, loads; and what their options do.
#pragma once

#include <string>

#include "results/report/case_names.h"
#include "results/report/grid.h"
#include "results/report/report.h"
#include "results/store/run.h"

namespace lockstep::results::report {

// A row for each case with parts, a column for each part, or for those that are read at a glance.
// Empty when no case has parts.
Grid StepGrid(const store::Run& run, NameStyle names, Columns columns);
// How ranks become one value, part by part; "" when no case has parts.
std::string StepLegend(const store::Run& run, Columns columns);
// How unevenly the ranks of cases with a part load_ns load, and what it costs; "" without any.
std::string FormatSkew(const store::Run& run);
// A row for each effect: the option's value, the one it is compared with, how many times as long it
// takes.
Grid EffectGrid(const store::Run& run, NameStyle names);
// … and the recommendation. "" without.
std::string FormatEffects(const store::Run& run, NameStyle names, Columns columns);

}  // namespace lockstep::results::report
