#include "bench/plan/sizes.h"

#include "bench/plan/plan.h"
#include "core/base/units.h"

namespace lockstep::bench::plan {
namespace {

Status CheckSizes(const Sizes& sizes) {
  if (sizes.begin_bytes <= 0) {
    return InvalidInput("-b {}: the smallest size must be positive", sizes.begin_bytes);
  }
  if (sizes.begin_bytes > sizes.end_bytes) {
    return InvalidInput("-b {} is larger than -e {}: nothing to measure; swap them",
                        FormatBytes(sizes.begin_bytes), FormatBytes(sizes.end_bytes));
  }
  if (sizes.step_bytes == 0 && sizes.factor <= 1.0 && sizes.begin_bytes != sizes.end_bytes) {
    return InvalidInput("-f {}: the factor must be larger than 1, or give a step with -i",
                        sizes.factor);
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<std::int64_t>> CountsOf(const Sizes& sizes, std::int64_t unit) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSizes(sizes));
  std::vector<std::int64_t> counts;
  double bytes = static_cast<double>(sizes.begin_bytes);
  while (bytes <= static_cast<double>(sizes.end_bytes)) {
    const std::int64_t count = static_cast<std::int64_t>(bytes) / unit;
    if (count > 0 && (counts.empty() || counts.back() != count)) counts.push_back(count);
    if (counts.size() > kMaxCases) break;
    bytes =
        sizes.step_bytes > 0 ? bytes + static_cast<double>(sizes.step_bytes) : bytes * sizes.factor;
    if (sizes.begin_bytes == sizes.end_bytes) break;
  }
  if (counts.empty()) {
    return InvalidInput("-e {} is smaller than a message of one element ({} bytes)",
                        sizes.end_bytes, unit);
  }
  return counts;
}

}  // namespace lockstep::bench::plan
