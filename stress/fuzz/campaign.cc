// Assesses trials, counts what they were, and shrinks one that is wrong.
#include "stress/fuzz/campaign.h"

#include <fmt/core.h>

#include "core/base/seeded_trials.h"

namespace lockstep::stress::fuzz {

Counts& Counts::operator+=(const Assessment& assessment) {
  return *this += Counts{.trials = 1,
                         .trouble = assessment.trouble ? 1 : 0,
                         .silent = assessment.silent ? 1 : 0,
                         .corrupt = assessment.corrupt ? 1 : 0,
                         .unknown = assessment.unknown ? 1 : 0};
}

Counts& Counts::operator+=(const Counts& other) {
  trials += other.trials;
  trouble += other.trouble;
  silent += other.silent;
  corrupt += other.corrupt;
  unknown += other.unknown;
  return *this;
}

Assessment Assess(const FuzzTrial& trial, const Judging& judge) {
  return AssessTrial(trial, Simulate(trial), judge);
}

std::string Describe(const Counts& counts) {
  return fmt::format(
      "{} where ranks hang or fail, of these {} unknown; {} where a wrong call passed, of these {} "
      "with wrong data",
      counts.trouble, counts.unknown, counts.silent, counts.corrupt);
}

std::string DescribeFailure(std::uint64_t seed, comm::sim::SimRules rules, const Judging& judge) {
  const FuzzTrial first = DrawTrial(seed, rules);
  const std::string kind = KindOfFailure(Assess(first, judge).wrong);
  const FuzzTrial least = Shrink(first, [&](const FuzzTrial& trial) {
    return KindOfFailure(Assess(trial, judge).wrong) == kind;
  });
  return fmt::format("# {}\n# {} ranks and {} steps before it was shrunk; streams: {}\n{}",
                     Assess(least, judge).wrong, first.ranks, first.steps.size(),
                     least.streams == StreamUse::kInline ? "one, inline"
                     : least.streams == StreamUse::kFifo ? "one beside the caller"
                                                         : "two beside the caller",
                     ScenarioText(least));
}

}  // namespace lockstep::stress::fuzz
