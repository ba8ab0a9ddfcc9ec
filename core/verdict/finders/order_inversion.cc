// Ranks that wait for each other in a ring over several communicators, which they use in different
// orders.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "core/verdict/finders/find.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

Finding Inversion(const Situation& situation, const std::vector<std::size_t>& cycle, bool proved) {
  constexpr std::size_t kShown = 4;
  Finding finding{.cause = Cause::kOrderInversion, .proved = proved};
  for (std::size_t n = 0; n < cycle.size(); ++n) {
    const RankView& view = situation.views[cycle[n]];
    const RankView& next = situation.views[cycle[(n + 1) % cycle.size()]];
    finding.culprits.push_back(view.rank());
    if (n >= kShown) continue;
    finding.message += fmt::format("{}rank {} waits in {} ({}) for rank {}", n == 0 ? "" : ", ",
                                   view.rank(), DescribeInvocation(*view.open),
                                   situation.GroupAt(view.open_group).name, next.rank());
  }
  if (cycle.size() > kShown)
    finding.message += fmt::format(" (and {} more)", cycle.size() - kShown);
  finding.message += ": a ring over communicators, in which nobody comes";
  finding.remedy = finding.cause.info().remedy;
  std::ranges::sort(finding.culprits);
  const RankView& first = situation.views[cycle.front()];
  finding.operation = OperationIn(first.open);
  finding.headline =
      Headline("{} wait for each other in different communicators", FormatRanks(finding.culprits));
  finding.headline.Add("; rank {} {}", first.rank(), InOrWhile(first, NameOfInvocation));
  return finding;
}

}  // namespace

std::vector<Finding> FindInversion(const Situation& situation,
                                   const std::vector<Mismatch>& mismatches) {
  if (situation.groups.size() < 2) return {};
  const Stuck stuck = FindStuck(situation, mismatches, true);
  if (stuck.cycle.empty()) return {};
  const bool silent = std::ranges::all_of(
      stuck.cycle, [&](std::size_t i) { return situation.overdue(situation.views[i]); });
  if (!situation.one_stream && !silent) return {};
  return {Inversion(situation, stuck.cycle, situation.one_stream)};
}

}  // namespace lockstep::verdict::finders
