// What races of streams came to and what their cures cost, over all cases of a run.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stress/cases/assess.h"

namespace lockstep::stress::harness {

// One case of `stream_race`: the rank with most corrupt rounds, and the slowest rank's median.
struct RaceRow {
  std::string pattern;
  std::string guard;  // of the program, or "CUDA_LAUNCH_BLOCKING=1" where the ranks have that
  double rounds = 0;
  double corrupt_rounds = 0;
  double overlapped_rounds = 0;
  std::optional<double> first_element;  // that was wrong, in the first corrupt round
  double round_us = 0;
  // Against the same pattern without a guard in this run.
  std::optional<double> extra_us;
};

std::vector<RaceRow> RaceRowsOf(const std::vector<cases::StressCase>& cases,
                                const std::vector<cases::CaseResult>& results);

// Do times mean something? Each rank needs three processors to itself: for its program, its kernels
// and its collectives. `environment`: of a run (results/store/run.h). Times of a simulation are
// those of its model.
bool TimesMeanSomething(const std::string& backend,
                        const std::vector<std::pair<std::string, std::string>>& environment);

// A row a case, the cures of each pattern that was corrupt, and tools that help to find such a race
// in a program; "" when there is none. Without `times_mean_something` no cost of a cure is shown.
// The cheapest cure is named only if it leads by more than the noise of these times: the largest
// cost below 0, since no cure makes a round faster.
std::string FormatRaceTable(const std::vector<RaceRow>& rows, bool times_mean_something);

}  // namespace lockstep::stress::harness
