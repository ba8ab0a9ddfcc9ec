// The tables of a program that was watched: who waited, for whom, and where in the program.
#pragma once

#include <string>

#include "results/store/run.h"

namespace lockstep::results::report {

// Ranks, then the places where most was waited; lines of at most kNarrow columns. "" for a run that
// watched nothing.
std::string FormatWaits(const store::Run& run);

}  // namespace lockstep::results::report
