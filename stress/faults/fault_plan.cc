#include "stress/faults/fault_plan.h"

#include <fmt/core.h>

namespace lockstep::stress::faults {

std::string Describe(const PlannedFault& fault) {
  const auto to = fault.amounts.find("to");
  const std::string peer = to == fault.amounts.end() ? "" : fmt::format(" to rank {}", to->second);
  return fmt::format("{} of rank {}{} at {}", NameOf(fault.kind), fault.rank, peer,
                     Describe(fault.moment));
}

}  // namespace lockstep::stress::faults
