// What trials came to, and the first that a verdict gets wrong, made small.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "stress/fuzz/trial.h"
#include "stress/fuzz/truth.h"

namespace lockstep::stress::fuzz {

inline constexpr std::array kAllRules = {comm::sim::SimRules::kNccl, comm::sim::SimRules::kMpi,
                                         comm::sim::SimRules::kGloo};

// Whether a trial still fails as the first one did.
using StillFails = std::function<bool(const FuzzTrial&)>;

// Removes ranks, steps and communicators, and makes what is left plainer, as long as it still
// fails: greedily, at most `most` attempts.
FuzzTrial Shrink(const FuzzTrial& trial, const StillFails& still_fails, int most = 5000);

struct Counts {
  std::int64_t trials = 0;
  std::int64_t trouble = 0;  // not all ranks finished
  std::int64_t silent = 0;   // a call differs, and all finished
  std::int64_t corrupt = 0;  // … with wrong data
  std::int64_t unknown = 0;  // the verdict could name no cause

  Counts& operator+=(const Assessment& assessment);
  Counts& operator+=(const Counts& other);
};

Assessment Assess(const FuzzTrial& trial, const Judging& judge);

// Without the number of trials.
std::string Describe(const Counts& counts);

// The smallest trial that fails for the same kind of reason, as text that can be run again.
std::string DescribeFailure(std::uint64_t seed, comm::sim::SimRules rules, const Judging& judge);

}  // namespace lockstep::stress::fuzz
