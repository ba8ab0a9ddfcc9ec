// How the machines and programs of two sets of launches differ. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/compare/figures.h"

namespace lockstep::results::compare {

struct Difference {
  std::string fact;       // "host/driver", "floor copy_gbps_alone"
  std::string base;       // "570"; several values with how many launches have each: "570 (4), 580"
  std::string candidate;  // "none" where no launch has the fact
  bool apart = true;      // no value occurs on both sides
};

// "measured by different versions of Lockstep: 1.2.3 -> 1.3.0" where kLockstepFact is among the
// differences, else "".
std::string OtherVersionText(std::span<const Difference> differences);

// Facts whose values differ between the sides, those without a common value first. Facts that
// differ from launch to launch anyhow (process and job numbers, free memory) are left out.
std::vector<Difference> FactDifferences(std::span<const Launch* const> base,
                                        std::span<const Launch* const> candidate);

// Those, and floors that differ by more than 5 % (rank test, 1 %).
std::vector<Difference> DifferencesOf(std::span<const Launch> base,
                                      std::span<const Launch> candidate);

}  // namespace lockstep::results::compare
