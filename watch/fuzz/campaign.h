// Many trials, and the first whose verdict is wrong, made small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/seeded_trials.h"
#include "watch/fuzz/truth.h"

namespace lockstep::watch::fuzz {

struct CampaignResult {
  std::int64_t trials = 0;
  std::int64_t silent = 0;   // nothing was said, rightly
  std::int64_t hangs = 0;    // ranks wait for ever
  std::int64_t unknown = 0;  // … and nobody can know all of them
  double seconds = 0;
  std::optional<std::uint64_t> failed;  // of those found, the lowest seed

  CampaignResult& operator+=(const CampaignResult& other);
};

// Stops at the first wrong verdict.
CampaignResult RunCampaign(const TrialOptions& options, const Spoil& spoil = {});

// One line: trials, time, rate, unknown.
std::string Describe(const CampaignResult& result);

// With fewer steps, ranks and kinds of calls, as long as the verdict is wrong in the same way.
Program Shrink(const Program& program, const Spoil& spoil = {});

// Why the verdict on this seed's program is wrong, and the smallest one that fails alike.
std::string DescribeFailure(std::uint64_t seed, const Spoil& spoil = {});

}  // namespace lockstep::watch::fuzz
