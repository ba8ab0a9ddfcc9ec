// Draws programs of both rooms by seed, and adds up what each of them says of a trial.
#include "cli/fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace lockstep::cli::fuzz {

Kinds Collectives() { return {stress::fuzz::kAllRules.begin(), stress::fuzz::kAllRules.end()}; }

Kinds AllKinds() {
  Kinds all = Collectives();
  all.push_back(kMessages);
  return all;
}

Counts& Counts::operator+=(const Assessment& assessment) { return *this += assessment.counts; }

Counts& Counts::operator+=(const Counts& other) {
  collectives += other.collectives;
  messages += other.messages;
  return *this;
}

Assessment Assess(std::uint64_t seed, const Kind& kind, const stress::fuzz::Judging& judge) {
  Assessment all;
  if (kind) {
    const auto one = stress::fuzz::Assess(stress::fuzz::DrawTrial(seed, *kind), judge);
    all.counts.collectives += one;
    all.wrong = one.wrong;
  } else {
    const auto one = watch::fuzz::Assess(watch::fuzz::DrawProgram(seed));
    all.counts.messages += one;
    all.wrong = one.wrong;
  }
  return all;
}

std::string Describe(const Campaign<Counts>& campaign) {
  const auto& [collectives, messages] = campaign.counts;
  const std::int64_t trials = collectives.trials + messages.trials;
  std::string text = fmt::format(
      "{} trials in {:.1f} s ({} a second): {} wrong verdict\n", trials, campaign.seconds,
      FormatFigure(static_cast<double>(trials) / std::max(campaign.seconds, 1e-9)),
      campaign.failed ? "a" : "no");
  const auto add = [&](const auto& counts, const char* what) {
    if (counts.trials == 0) return;
    text += fmt::format("  {} of {}: {}\n", counts.trials, what, Describe(counts));
  };
  add(collectives, "collectives");
  add(messages, "messages");
  return text;
}

std::string DescribeFailure(std::uint64_t seed, const Kind& kind,
                            const stress::fuzz::Judging& judge) {
  return kind ? stress::fuzz::DescribeFailure(seed, *kind, judge)
              : watch::fuzz::DescribeFailure(seed);
}

}  // namespace lockstep::cli::fuzz
