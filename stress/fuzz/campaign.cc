// Runs trials by seed, assesses each, and shrinks the first that is wrong. The sum of all is one
// table.
#include "stress/fuzz/campaign.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/units.h"

namespace lockstep::stress::fuzz {
namespace {

// "culprit: not rank 2, …" and "culprit: not rank 1, …" are one kind.
std::string KindOf(const std::string& why) { return why.substr(0, why.find_first_of(":,")); }

Assessment Assess(const FuzzTrial& trial, const Judging& judge) {
  return AssessTrial(trial, Simulate(trial), judge);
}

}  // namespace

FuzzResult& FuzzResult::operator+=(const FuzzResult& other) {
  trials += other.trials;
  trouble += other.trouble;
  silent += other.silent;
  corrupt += other.corrupt;
  unknown += other.unknown;
  if (other.failure && (!failure || other.failure->seed < failure->seed)) failure = other.failure;
  return *this;
}

FuzzResult RunCampaign(const TrialOptions& options, const Judging& judge, const Rules& all_rules) {
  return RunTrials<FuzzResult>(options, [&](std::uint64_t seed, FuzzResult& sum) {
    const comm::sim::SimRules rules = all_rules[seed % all_rules.size()];
    const Assessment found = Assess(DrawTrial(seed, rules), judge);
    ++sum.trials;
    sum.trouble += found.trouble ? 1 : 0;
    sum.silent += found.silent ? 1 : 0;
    sum.corrupt += found.corrupt ? 1 : 0;
    sum.unknown += found.unknown ? 1 : 0;
    if (!found.wrong.empty()) sum.failure = {seed, rules, found.wrong};
    return found.wrong.empty();
  });
}

std::string Describe(const FuzzResult& result) {
  const auto share = [&](std::int64_t part, std::int64_t all) {
    return all == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(all);
  };
  return fmt::format(
      "{} trials in {:.1f} s ({} a second): {} wrong verdict\n"
      "  {} with ranks that hang or fail, of these {} unknown ({:.3f} %)\n"
      "  {} where a wrong call passed, {} of them with wrong data\n",
      result.trials, result.seconds,
      FormatFigure(static_cast<double>(result.trials) / std::max(result.seconds, 1e-9)),
      result.failure ? "a" : "no", result.trouble, result.unknown,
      share(result.unknown, result.trouble), result.silent, result.corrupt);
}

std::string DescribeFailure(const FuzzFailure& failure, const Judging& judge) {
  const FuzzTrial first = DrawTrial(failure.seed, failure.rules);
  const std::string kind = KindOf(failure.why);
  const FuzzTrial least = Shrink(
      first, [&](const FuzzTrial& trial) { return KindOf(Assess(trial, judge).wrong) == kind; });
  return fmt::format("# {}\n# {} ranks and {} steps before it was shrunk; streams: {}\n{}",
                     Assess(least, judge).wrong, first.ranks, first.steps.size(),
                     least.streams == StreamUse::kInline ? "one, inline"
                     : least.streams == StreamUse::kFifo ? "one beside the caller"
                                                         : "two beside the caller",
                     ScenarioText(least));
}

}  // namespace lockstep::stress::fuzz
