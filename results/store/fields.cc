#include "results/store/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace lockstep::results::store {

std::string JoinRanks(const std::vector<int>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ","));
}

bool SplitRanks(std::string_view text, std::vector<int>& ranks) {
  ranks.clear();
  while (!text.empty()) {
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc()) return false;
    ranks.push_back(rank);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return true;
    if (text.front() != ',' || text.size() == 1) return false;
    text.remove_prefix(1);
  }
  return true;
}

}  // namespace lockstep::results::store
