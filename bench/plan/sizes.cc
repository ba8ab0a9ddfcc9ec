// From the smallest and the largest size and what lies between two, to counts of elements. A sweep
// that would not end, or not be one, is refused before.
#include "bench/plan/sizes.h"

#include <cmath>

#include "bench/plan/plan.h"
#include "core/base/units.h"

namespace lockstep::bench::plan {
namespace {

// More of them are no sweep: most would round to the size before.
constexpr double kMostFactors = 1'000'000;

Status CheckFactor(const Sizes& sizes) {
  if (!(sizes.factor > 1.0)) {
    return InvalidInput("-f {}: the factor must be larger than 1, or give a step with -i",
                        sizes.factor);
  }
  const double range =
      static_cast<double>(sizes.end_bytes) / static_cast<double>(sizes.begin_bytes);
  if (std::log(range) / std::log(sizes.factor) <= kMostFactors) return OkStatus();
  return InvalidInput(
      "-f {}: so small a factor makes too many sizes from {} to {}; give a larger "
      "one, such as 2, or a step with -i",
      sizes.factor, FormatBytes(sizes.begin_bytes), FormatBytes(sizes.end_bytes));
}

Status CheckSizes(const Sizes& sizes) {
  if (sizes.begin_bytes <= 0) {
    return InvalidInput("-b {}: the smallest size must be positive", sizes.begin_bytes);
  }
  if (sizes.begin_bytes > sizes.end_bytes) {
    return InvalidInput("-b {} is larger than -e {}: nothing to measure; swap them",
                        FormatBytes(sizes.begin_bytes), FormatBytes(sizes.end_bytes));
  }
  const bool multiplies = sizes.step_bytes == 0 && sizes.begin_bytes != sizes.end_bytes;
  return multiplies ? CheckFactor(sizes) : OkStatus();
}

}  // namespace

Result<std::vector<std::int64_t>> CountsOf(const Sizes& sizes, std::int64_t unit) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSizes(sizes));
  std::vector<std::int64_t> counts;
  const auto add = [&](std::int64_t bytes) {
    const std::int64_t count = bytes / unit;
    if (count > 0 && (counts.empty() || counts.back() != count)) counts.push_back(count);
    return counts.size() <= kMaxCases;
  };
  if (sizes.step_bytes > 0) {
    // Whole numbers: a double of some petabytes has none between its neighbours.
    std::int64_t bytes = sizes.begin_bytes;
    while (add(bytes) && sizes.step_bytes <= sizes.end_bytes - bytes) bytes += sizes.step_bytes;
  } else if (add(sizes.begin_bytes) && sizes.begin_bytes < sizes.end_bytes) {
    double bytes = static_cast<double>(sizes.begin_bytes) * sizes.factor;
    while (bytes <= static_cast<double>(sizes.end_bytes) && add(static_cast<std::int64_t>(bytes))) {
      bytes *= sizes.factor;
    }
  }
  if (counts.empty()) {
    return InvalidInput("-e {} is smaller than a message of one element ({} bytes)",
                        sizes.end_bytes, unit);
  }
  return counts;
}

}  // namespace lockstep::bench::plan
