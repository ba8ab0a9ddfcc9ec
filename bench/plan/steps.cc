#include "bench/plan/steps.h"

namespace lockstep::bench::plan {

std::string_view NameOf(Over over) {
  switch (over) {
    case Over::kSlowest:
      return "slowest";
    case Over::kMean:
      return "mean";
    case Over::kMax:
      return "max";
  }
  return "?";
}

}  // namespace lockstep::bench::plan
