#include <fmt/core.h>

#include "core/verdict/finders/find.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {

std::vector<Finding> FindLost(const Situation& situation) {
  const Views lost = ViewsWhere(situation.views, [](const RankView& view) {
    return view.evidence->state == ProcessState::kLost;
  });
  if (lost.empty()) return {};
  Finding finding{.cause = Cause::kUnknown, .culprits = RanksOf(lost)};
  const bool one = finding.culprits.size() == 1;
  finding.message = fmt::format("the {} of {} {} not answer: what became of {} is not known",
                                one ? "agent" : "agents", FormatRanks(finding.culprits),
                                one ? "does" : "do", one ? "it" : "them");
  finding.headline =
      Headline("the {} of {} {} not answer; what became of {} is not known",
               one ? "agent" : "agents", Who(lost), one ? "does" : "do", one ? "it" : "them");
  finding.remedy = fmt::format("See whether rank {}'s host is up, reachable and not out of memory.",
                               finding.culprits.front());
  return {finding};
}

}  // namespace lockstep::verdict::finders
