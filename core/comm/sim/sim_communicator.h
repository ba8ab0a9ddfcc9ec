// One rank's communicator in a simulated world.
#pragma once

#include <memory>

#include "core/comm/communicator.h"
#include "core/comm/sim/state.h"

namespace lockstep::comm::sim {

// `rank` is of the group.
std::unique_ptr<Communicator> NewSimCommunicator(SimState& state, std::shared_ptr<SimGroup> group,
                                                 int rank);

}  // namespace lockstep::comm::sim
