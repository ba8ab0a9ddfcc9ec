// Wrong data, by a check of the results.
#include <fmt/core.h>

#include "core/verdict/finders/find.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {

std::vector<Finding> FindWrongData(const Situation& situation) {
  const Views wrong = ViewsWhere(
      situation.views, [](const RankView& view) { return !view.evidence->wrong_data.empty(); });
  if (wrong.empty()) return {};
  const RankView& first = *wrong.front();
  Finding finding{.cause = Cause::kDataCorruption, .culprits = RanksOf(wrong), .proved = true};
  finding.message =
      fmt::format("{} received wrong data; rank {}: {}", FormatRanks(finding.culprits),
                  first.rank(), ShortLine(first.evidence->wrong_data));
  finding.headline = Headline(Who(wrong) + " received wrong data");
  finding.headline.Add("{}: {}", wrong.size() > 1 ? fmt::format("; rank {}", first.rank()) : "",
                       FirstWords(first.evidence->wrong_data, 12));
  finding.remedy = finding.cause.info().remedy;
  return {std::move(finding)};
}

}  // namespace lockstep::verdict::finders
