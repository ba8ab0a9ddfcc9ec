#include "bench/plan/steps.h"

namespace lockstep::bench::plan {

std::string_view NameOf(RankReduction reduction) {
  switch (reduction) {
    case RankReduction::kSlowest:
      return "slowest";
    case RankReduction::kMean:
      return "mean";
    case RankReduction::kMax:
      return "max";
  }
  return "?";
}

}  // namespace lockstep::bench::plan
