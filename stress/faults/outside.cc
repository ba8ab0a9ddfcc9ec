#include "stress/faults/outside.h"

#include <algorithm>
#include <csignal>
#include <iterator>

#include "core/base/check.h"

namespace lockstep::stress::faults {
namespace {

struct OrderInfo {
  FaultKind kind;
  control::AgentFault::Kind order;
  const char* amount;  // its name in the scenario; none
};
constexpr OrderInfo kOrders[] = {
    {FaultKind::kCpuHog, control::AgentFault::Kind::kCpuHog, "processes"},
    {FaultKind::kCpuThrottle, control::AgentFault::Kind::kCpuThrottle, "share"},
    {FaultKind::kMemoryPressure, control::AgentFault::Kind::kMemoryLimit, "bytes"},
    {FaultKind::kShmFull, control::AgentFault::Kind::kShmFull, "bytes"},
    {FaultKind::kFdExhaustion, control::AgentFault::Kind::kDescriptorLimit, "descriptors"},
    {FaultKind::kLowMemlock, control::AgentFault::Kind::kLockedMemoryLimit, "bytes"},
    {FaultKind::kClockJump, control::AgentFault::Kind::kClockJump, "by"},
    {FaultKind::kEnvironment, control::AgentFault::Kind::kSetup, ""},
};

const OrderInfo* Find(FaultKind kind) {
  const auto* const found = std::find_if(std::begin(kOrders), std::end(kOrders),
                                         [&](const OrderInfo& info) { return info.kind == kind; });
  return found == std::end(kOrders) ? nullptr : found;
}

}  // namespace

int SignalOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return SIGKILL;
    case FaultKind::kStop:
      return SIGSTOP;
    case FaultKind::kTerminate:
      return SIGTERM;
    case FaultKind::kInterrupt:
      return SIGINT;
    default:
      LOCKSTEP_CHECK(false, "a fault from outside");
  }
}

bool IsByAgent(FaultKind kind) { return Find(kind) != nullptr; }

control::AgentFault OrderFor(const PlannedFault& fault) {
  const OrderInfo* const info = Find(fault.kind);
  LOCKSTEP_CHECK(info != nullptr, "a fault that an agent applies");
  const auto amount = fault.amounts.find(info->amount);
  return {info->order, amount == fault.amounts.end() ? 0 : amount->second,
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
