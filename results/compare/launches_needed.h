// Why a comparison is ambiguous and what would resolve it. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "core/stats/two_samples.h"

namespace lockstep::results::compare {

struct LaunchesOf {
  std::size_t base = 0, candidate = 0;
};

struct Circumstances {
  bool interleaved = true;
  double allowance = 0;  // of drift, in log time
  double min_effect = 0;
  std::size_t tests = 1;  // that share the correction
};

struct LaunchesNeeded {
  std::string why;       // "too few launches", "the interval (-2.0 .. +6.1 %) is too wide"
  std::string resolve;   // "3 more launches a side", "interleave the launches …"
  std::size_t more = 0;  // launches a side; 0: launches alone do not resolve it
};

// Intervals narrow with the square root of the launches; what is asked for is an interval that lies
// beyond 0 when the estimate is at least the minimum effect, or else within the minimum effect.
LaunchesNeeded NeedLaunches(const stats::Shift& shift, LaunchesOf launches,
                            const Circumstances& with);

// The fewest launches a side with which a lone change among `tests` can be proved by ranks.
std::size_t FewestToDecide(std::size_t tests);

}  // namespace lockstep::results::compare
