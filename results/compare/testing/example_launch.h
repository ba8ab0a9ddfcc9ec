// Runs made up for tests: a benchmark with a few cases whose times are given.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "results/store/run.h"

namespace lockstep::results::compare {

struct ExampleLaunch {
  std::uint64_t number = 0;  // becomes its id
  std::string started_at;
  std::string host = "node1";
  std::string driver = "570";
  Version lockstep = {"1.2.3", "1a2b3c4", false};
  // Name and median of each case; the ranks take 95 % and 100 % of it in every iteration.
  std::vector<std::pair<std::string, double>> medians_ns;
};

store::Run RunOf(const ExampleLaunch& launch);

// So many days after the first of September 2026 and minutes after its midnight, UTC:
// "2026-09-01T02:05:00Z" for 0 and 125.
std::string TimeOf(int days, int minutes);

}  // namespace lockstep::results::compare
