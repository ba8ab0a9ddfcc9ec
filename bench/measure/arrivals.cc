#include "bench/measure/arrivals.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/stats/stats.h"

namespace lockstep::bench::measure {

std::optional<results::store::Arrivals> ArrivalsOf(const results::store::Samples& samples,
                                                   double clock_error_ns) {
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  if (ranks < 2) return std::nullopt;
  std::vector<double> skews;
  std::vector<double> transfers;
  std::vector<std::int64_t> came_last(ranks);
  for (std::size_t row = 0; row < samples.round.size(); ++row) {
    const auto entries = std::span(samples.entry_ns).subspan(row * ranks, ranks);
    const auto exits = std::span(samples.exit_ns).subspan(row * ranks, ranks);
    if (std::ranges::count(exits, results::store::Samples::kNoTime) > 0) continue;
    const auto [first, last] = std::ranges::minmax_element(entries);
    skews.push_back(static_cast<double>(*last - *first));
    transfers.push_back(static_cast<double>(std::ranges::max(exits) - *last));
    ++came_last[static_cast<std::size_t>(last - entries.begin())];
  }
  if (skews.empty()) return std::nullopt;
  results::store::Arrivals arrivals{.skew_ns = stats::Median(skews),
                                    .transfer_ns = stats::Median(transfers),
                                    .clock_error_ns = clock_error_ns};
  const auto most = std::ranges::max_element(came_last);
  arrivals.last_rank = static_cast<int>(most - came_last.begin());
  arrivals.last_share = static_cast<double>(*most) / static_cast<double>(skews.size());
  return arrivals;
}

}  // namespace lockstep::bench::measure
