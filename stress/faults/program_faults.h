// The rows of the faults of the program, each with its body.
#pragma once

#include <span>

#include "stress/faults/fault_registry.h"

namespace lockstep::stress::faults {

// Those with an enumerator first, in its order.
std::span<const FaultInfo> ProgramFaults();

}  // namespace lockstep::stress::faults
