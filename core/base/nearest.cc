#include "core/base/nearest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// One row of the table at a time.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view NearestName(std::string_view text, std::span<const std::string_view> names) {
  const auto nearest = std::ranges::min_element(names, [&](std::string_view a, std::string_view b) {
    return Distance(text, a) < Distance(text, b);
  });
  if (nearest == names.end() || Distance(text, *nearest) > nearest->size() / 2) return "";
  return *nearest;
}

std::string NearestHint(std::string_view text, std::span<const std::string_view> names) {
  const std::string_view nearest = NearestName(text, names);
  return nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest);
}

}  // namespace lockstep
