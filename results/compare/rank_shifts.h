// Which rank takes longer than it did, beside its peers. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/stats/two_samples.h"
#include "results/compare/figures.h"

namespace lockstep::results::compare {

struct RankShift {
  int rank = 0;
  std::string what;    // of the RankExcess
  stats::Shift shift;  // of the rank's excess, in parts of the case's time
};

// A shift for each rank and each excess that all launches have. When all ranks became slower alike,
// because they wait for one, it is in no rank's excess and not here.
std::vector<RankShift> RankShiftsOf(std::span<const CaseFigures* const> base,
                                    std::span<const CaseFigures* const> candidate,
                                    double allowance);

}  // namespace lockstep::results::compare
