#include <fmt/core.h>

#include "core/verdict/finders/find.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {

std::vector<Finding> FindLost(const Situation& situation) {
  Finding finding;
  Views lost;
  for (const RankView& view : situation.views) {
    if (view.evidence->state != ProcessState::kLost) continue;
    finding.culprits.push_back(view.rank());
    lost.push_back(&view);
  }
  if (finding.culprits.empty()) return {};
  finding.cause = Cause::kUnknown;
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
