#include "core/verdict/cause.h"

#include <algorithm>
#include <iterator>

namespace lockstep::verdict {

std::vector<std::string_view> NamesOfCases() {
  std::vector<std::string_view> names;
  for (const CauseInfo& info : kCauses) {
    if (info.of_cases) names.push_back(info.name);
  }
  return names;
}

FindingCause FindingCause::Named(std::string_view name) {
  const auto known = std::ranges::find(kCauses, name, &CauseInfo::name);
  if (known != std::end(kCauses) && known->cause != Cause::kForeign) return known->cause;
  FindingCause foreign(Cause::kForeign);
  foreign.foreign_ = name;
  return foreign;
}

}  // namespace lockstep::verdict
