// One rank's communicator in a simulated world.
#ifndef LOCKSTEP_CORE_COMM_SIM_SIM_COMMUNICATOR_H_
#define LOCKSTEP_CORE_COMM_SIM_SIM_COMMUNICATOR_H_

#include <memory>

#include "core/comm/communicator.h"
#include "core/comm/sim/state.h"

namespace lockstep::comm::sim {

// `rank` is of the group.
std::unique_ptr<Communicator> NewSimCommunicator(SimState& state, std::shared_ptr<SimGroup> group,
                                                 int rank);

}  // namespace lockstep::comm::sim

#endif  // LOCKSTEP_CORE_COMM_SIM_SIM_COMMUNICATOR_H_
