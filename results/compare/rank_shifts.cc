#include "results/compare/rank_shifts.h"

#include <cmath>
#include <cstddef>

namespace lockstep::results::compare {
namespace {

const RankExcess* ExcessNamed(const CaseFigures& figures, const std::string& what) {
  for (const RankExcess& excess : figures.by_rank) {
    if (excess.what == what) return &excess;
  }
  return nullptr;
}

// launches x ranks, in parts of the case's time; empty when a launch lacks it or has another number
// of ranks.
std::vector<std::vector<double>> Excesses(std::span<const CaseFigures* const> launches,
                                          const std::string& what, std::size_t ranks) {
  std::vector<std::vector<double>> all;
  for (const CaseFigures* figures : launches) {
    const RankExcess* excess = ExcessNamed(*figures, what);
    if (excess == nullptr || excess->ns.size() != ranks || !(figures->median_ns > 0)) return {};
    std::vector<double>& launch = all.emplace_back(excess->ns);
    for (double& one : launch) {
      if (!std::isfinite(one)) return {};
      one /= figures->median_ns;
    }
  }
  return all;
}

std::vector<double> OfRank(const std::vector<std::vector<double>>& excesses, std::size_t rank) {
  std::vector<double> values;
  for (const std::vector<double>& launch : excesses) values.push_back(launch[rank]);
  return values;
}

}  // namespace

std::vector<RankShift> RankShiftsOf(std::span<const CaseFigures* const> base,
                                    std::span<const CaseFigures* const> candidate,
                                    double allowance) {
  std::vector<RankShift> shifts;
  if (base.empty() || candidate.empty()) return shifts;
  for (const RankExcess& excess : base.front()->by_rank) {
    const std::size_t ranks = excess.ns.size();
    const auto before = Excesses(base, excess.what, ranks);
    const auto after = Excesses(candidate, excess.what, ranks);
    if (before.empty() || after.empty()) continue;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      shifts.push_back(
          {static_cast<int>(rank), excess.what,
           stats::EstimateShift(OfRank(before, rank), OfRank(after, rank), 0.95, allowance)});
    }
  }
  return shifts;
}

}  // namespace lockstep::results::compare
