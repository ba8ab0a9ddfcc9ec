#include "core/verdict/cause.h"

#include <algorithm>

namespace lockstep::verdict {
namespace {

constexpr bool IsInOrder() {
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (kCauses[i].cause != static_cast<Cause>(i)) return false;
  }
  return true;
}
static_assert(IsInOrder(), "a row a cause, in the order of the enumerators");

}  // namespace

std::vector<std::string_view> NamesOfCases() {
  std::vector<std::string_view> names;
  for (const CauseInfo& info : kCauses) {
    if (info.of_cases) names.push_back(info.name);
  }
  return names;
}

FindingCause FindingCause::Named(std::string_view name) {
  const auto known = std::ranges::find(kCauses, name, &CauseInfo::name);
  if (known != kCauses.end() && known->cause != Cause::kForeign) return known->cause;
  FindingCause foreign(Cause::kForeign);
  foreign.foreign_ = name;
  return foreign;
}

}  // namespace lockstep::verdict
