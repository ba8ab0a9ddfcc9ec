// Links between ranks, for people.
#pragma once

#include <string>

#include "results/store/run.h"

namespace lockstep::results::report {

// Matrices of half round trips and of bandwidths while they fit a page, else how they spread; then
// the pairs that stand out, and what each rank sent to all others at once. `run` has links.
std::string FormatLinks(const store::Run& run);

}  // namespace lockstep::results::report
