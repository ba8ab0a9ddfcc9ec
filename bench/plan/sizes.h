// The message sizes of a sweep. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"

namespace lockstep::bench::plan {

struct Sizes {
  std::int64_t begin_bytes = 8;
  std::int64_t end_bytes = std::int64_t{64} << 20;
  std::int64_t step_bytes = 0;  // > 0: begin, begin + step, …; else multiplied by `factor`
  double factor = 2;
};

// Each size as a whole number of elements of a rank, which make `unit` bytes of the message.
// Duplicates that rounding makes are dropped. Stops soon after kMaxCases.
Result<std::vector<std::int64_t>> CountsOf(const Sizes& sizes, std::int64_t unit);

}  // namespace lockstep::bench::plan
