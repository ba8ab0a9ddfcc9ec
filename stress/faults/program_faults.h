// The rows of the faults of the program, each with its body.
#ifndef LOCKSTEP_STRESS_FAULTS_PROGRAM_FAULTS_H_
#define LOCKSTEP_STRESS_FAULTS_PROGRAM_FAULTS_H_

#include <span>

#include "stress/faults/fault_registry.h"

namespace lockstep::stress::faults {

// Those with an enumerator first, in its order.
std::span<const FaultInfo> ProgramFaults();

}  // namespace lockstep::stress::faults

#endif  // LOCKSTEP_STRESS_FAULTS_PROGRAM_FAULTS_H_
