// Many trials, and the first that a verdict gets wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/seeded_trials.h"
#include "stress/fuzz/trial.h"
#include "stress/fuzz/truth.h"

namespace lockstep::stress::fuzz {

using Rules = std::vector<comm::sim::SimRules>;
inline const Rules kAllRules = {comm::sim::SimRules::kNccl, comm::sim::SimRules::kMpi,
                                comm::sim::SimRules::kGloo};

// Whether a trial still fails as the first one did.
using StillFails = std::function<bool(const FuzzTrial&)>;

// Removes ranks, steps and communicators, and makes what is left plainer, as long as it still
// fails: greedily, at most `most` attempts.
FuzzTrial Shrink(const FuzzTrial& trial, const StillFails& still_fails, int most = 5000);

struct FuzzFailure {
  std::uint64_t seed = 0;
  comm::sim::SimRules rules = comm::sim::SimRules::kNccl;
  std::string why;
};

struct FuzzResult {
  std::int64_t trials = 0;
  std::int64_t trouble = 0;  // not all ranks finished
  std::int64_t silent = 0;   // a call differs, and all finished
  std::int64_t corrupt = 0;  // … with wrong data
  std::int64_t unknown = 0;  // the verdict could name no cause
  double seconds = 0;
  std::optional<FuzzFailure> failure;  // of those found, the one with the lowest seed

  FuzzResult& operator+=(const FuzzResult& other);
};

// Seed s has the rules s modulo their number. Stops at the first failure.
FuzzResult RunCampaign(const TrialOptions& options, const Judging& judge,
                       const Rules& rules = kAllRules);

// A line of trials, time and rate, then lines of what they were; each ends with a new line.
std::string Describe(const FuzzResult& result);

// The smallest trial that fails for the same kind of reason, as text that can be run again.
std::string DescribeFailure(const FuzzFailure& failure, const Judging& judge);

}  // namespace lockstep::stress::fuzz
