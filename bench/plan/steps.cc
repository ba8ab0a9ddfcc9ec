#include "bench/plan/steps.h"

namespace lockstep::bench::plan {

std::string_view NameOf(RankReduction reduction) {
  static constexpr std::string_view kNames[] = {"slowest", "mean", "max"};
  return kNames[static_cast<std::size_t>(reduction)];
}

}  // namespace lockstep::bench::plan
