#include <fmt/core.h>

#include "core/verdict/finders/find.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {

std::vector<Finding> FindWrongData(const Situation& situation) {
  Finding finding;
  const RankView* first = nullptr;
  Views wrong;
  for (const RankView& view : situation.views) {
    if (view.evidence->wrong_data.empty()) continue;
    if (first == nullptr) first = &view;
    finding.culprits.push_back(view.rank());
    wrong.push_back(&view);
  }
  if (first == nullptr) return {};
  finding.cause = Cause::kDataCorruption;
  finding.proved = true;
  finding.message =
      fmt::format("{} received wrong data; rank {}: {}", FormatRanks(finding.culprits),
                  first->rank(), OneLine(first->evidence->wrong_data));
  finding.headline = Headline(Who(wrong) + " received wrong data");
  finding.headline.Add("{}: {}", wrong.size() > 1 ? fmt::format("; rank {}", first->rank()) : "",
                       FirstWords(first->evidence->wrong_data, 12));
  finding.remedy = finding.cause.info().remedy;
  return {finding};
}

}  // namespace lockstep::verdict::finders
