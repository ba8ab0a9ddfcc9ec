// Which machine a launch is of. Pure.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "results/compare/figures.h"

namespace lockstep::results::compare {

// A launch that failed early may not name the hosts of all its ranks. It is of the only machine
// that it can be of: one that has the hosts it does name, with launches in the nearest folder, or,
// of several, with launches of the same plan.
struct Machines {
  // By the host names of its ranks, "a+b"; "unknown" where launches with times name none.
  std::map<std::string, std::vector<const Launch*>> launches;
  std::deque<Launch> assumed;  // whose machine is not named; their outcomes say so
  // Launches of a machine that is not known, and that may be the newest of their plan there; and
  // machines whose launches never had a time. A line each.
  std::vector<std::string> failures;
};

// Points into `launches`.
Machines FindMachines(std::span<const Launch> launches);

}  // namespace lockstep::results::compare
