#include "stress/faults/outside.h"

#include <string>

#include "core/base/check.h"

namespace lockstep::stress::faults {

control::AgentFault OrderFor(const PlannedFault& fault) {
  const FaultInfo& info = InfoOf(fault.kind);
  LOCKSTEP_CHECK(info.order, "a fault that an agent applies");
  const auto amount = info.parameters.empty()
                          ? fault.amounts.end()
                          : fault.amounts.find(std::string(info.parameters.front().name));
  return {*info.order, amount == fault.amounts.end() ? 0 : amount->second,
          fault.duration_seconds.value_or(0)};
}

std::vector<control::WorkerSetup> SetupsFor(const std::vector<PlannedFault>& faults, int ranks) {
  std::vector<control::WorkerSetup> setups(static_cast<std::size_t>(ranks));
  for (const PlannedFault& fault : faults) {
    control::WorkerSetup& setup = setups[static_cast<std::size_t>(fault.rank)];
    setup.private_shm = setup.private_shm || fault.kind == FaultKind::kShmFull;
    setup.movable_clock = setup.movable_clock || fault.kind == FaultKind::kClockJump;
    setup.environment.insert(setup.environment.end(), fault.variables.begin(),
                             fault.variables.end());
  }
  return setups;
}

}  // namespace lockstep::stress::faults
