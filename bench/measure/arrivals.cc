// Skews and transfers of iterations, or their means where a visit counts by its mean, and who came
// last. Rows that a rank did not complete are left out.
#include "bench/measure/arrivals.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/measure/visit_figure.h"
#include "core/stats/stats.h"

namespace lockstep::bench::measure {
namespace {

// What is compared: an iteration, or a visit where that has its figure by its mean.
struct Row {
  std::vector<double> skews;
  std::vector<double> transfers;
  std::vector<double> lateness;  // by rank, beside the first that came
};

int LastOf(const Row& row) {
  const auto last = std::ranges::max_element(row.lateness);
  return static_cast<int>(last - row.lateness.begin());
}

void Add(std::span<const std::int64_t> entries, std::span<const std::int64_t> exits, Row& row) {
  const auto [first, last] = std::ranges::minmax(entries);
  row.skews.push_back(static_cast<double>(last - first));
  row.transfers.push_back(static_cast<double>(std::ranges::max(exits) - last));
  row.lateness.resize(entries.size());
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    row.lateness[rank] += static_cast<double>(entries[rank] - first);
  }
}

}  // namespace

std::optional<results::store::Arrivals> ArrivalsOf(const results::store::Samples& samples,
                                                   double clock_error_ns, bool by_mean) {
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  if (ranks < 2) return std::nullopt;
  std::vector<double> skews;
  std::vector<double> transfers;
  std::vector<std::int64_t> came_last(ranks);
  Row row;
  for (std::size_t i = 0; i < samples.round.size(); ++i) {
    const auto entries = std::span(samples.entry_ns).subspan(i * ranks, ranks);
    const auto exits = std::span(samples.exit_ns).subspan(i * ranks, ranks);
    if (std::ranges::count(exits, results::store::Samples::kNoTime) == 0) Add(entries, exits, row);
    const bool goes_on =
        by_mean && i + 1 < samples.round.size() && samples.round[i + 1] == samples.round[i];
    if (goes_on || row.skews.empty()) continue;
    skews.push_back(FigureOfVisit(by_mean, row.skews));
    transfers.push_back(FigureOfVisit(by_mean, row.transfers));
    ++came_last[static_cast<std::size_t>(LastOf(row))];
    row = {};
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
