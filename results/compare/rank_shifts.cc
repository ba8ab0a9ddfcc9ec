#include "results/compare/rank_shifts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/stats/stats.h"

namespace lockstep {
namespace {

const RankTimes* TimesNamed(const CaseFigures& figures, const std::string& name) {
  for (const RankTimes& times : figures.by_rank) {
    if (times.name == name) return &times;
  }
  return nullptr;
}

// By rank; empty when a rank has no time. The median of the others follows from the sorted times:
// leaving one out moves the middle by half a place.
std::vector<double> ExcessByRank(const std::vector<double>& ns, double case_ns) {
  for (const double one : ns) {
    if (!std::isfinite(one)) return {};
  }
  std::vector<double> sorted = ns;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> excess;
  const std::size_t others = ns.size() - 1;
  for (const double own : ns) {
    const auto place = static_cast<std::size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), own) - sorted.begin());
    const auto other = [&](std::size_t i) { return sorted[i < place ? i : i + 1]; };
    const double median = (other((others - 1) / 2) + other(others / 2)) / 2;
    excess.push_back((own - median) / case_ns);
  }
  return excess;
}

// launches x ranks; empty when a launch lacks the times or has another number of ranks.
std::vector<std::vector<double>> Excesses(std::span<const CaseFigures* const> launches,
                                          const std::string& name, std::size_t ranks) {
  std::vector<std::vector<double>> all;
  for (const CaseFigures* figures : launches) {
    const RankTimes* times = TimesNamed(*figures, name);
    if (times == nullptr || times->ns.size() != ranks || !(figures->median_ns > 0)) return {};
    all.push_back(ExcessByRank(times->ns, figures->median_ns));
    if (all.back().empty()) return {};
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
  for (const RankTimes& times : base.front()->by_rank) {
    const std::size_t ranks = times.ns.size();
    if (ranks < 2) continue;
    const auto before = Excesses(base, times.name, ranks);
    const auto after = Excesses(candidate, times.name, ranks);
    if (before.empty() || after.empty()) continue;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      shifts.push_back({static_cast<int>(rank), times.name,
                        EstimateShift(OfRank(before, rank), OfRank(after, rank), 0.95, allowance)});
    }
  }
  return shifts;
}

}  // namespace lockstep
