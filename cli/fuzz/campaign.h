// Random programs of all kinds in turn, each judged by the judge that it is for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/seeded_trials.h"
#include "stress/fuzz/campaign.h"
#include "watch/fuzz/campaign.h"

namespace lockstep::cli::fuzz {

// What a trial draws: a program of collectives that runs by a library's rules; or else messages of
// MPI with tags, wildcards and requests, for the judge of `lockstep watch`.
using Kind = std::optional<comm::sim::SimRules>;
inline constexpr Kind kMessages = std::nullopt;
using Kinds = std::vector<Kind>;
Kinds Collectives();
Kinds AllKinds();
// Seed s draws the kind s modulo their number.
inline Kind KindOf(const Kinds& kinds, std::uint64_t seed) { return kinds[seed % kinds.size()]; }

struct Assessment;
struct Counts {
  stress::fuzz::Counts collectives;
  watch::fuzz::Counts messages;

  Counts& operator+=(const Assessment& assessment);
  Counts& operator+=(const Counts& other);
};
struct Assessment {
  Counts counts;
  std::string wrong;  // "": the verdict is right; else a kind of failure (":") and why
};

// `judge`: of collectives.
Assessment Assess(std::uint64_t seed, const Kind& kind, const stress::fuzz::Judging& judge);

// A line of trials, time and rate, then lines of what they were; each ends with a new line.
std::string Describe(const Campaign<Counts>& campaign);

// Why the verdict is wrong, and the smallest program that fails alike; collectives as a scenario.
std::string DescribeFailure(std::uint64_t seed, const Kind& kind,
                            const stress::fuzz::Judging& judge);

}  // namespace lockstep::cli::fuzz
