// The device of a simulated rank: host memory, and streams and events in virtual time.
#pragma once

#include <memory>

#include "core/comm/sim/state.h"
#include "core/device/device.h"

namespace lockstep::comm::sim {

// As the host device (core/device/host), with fibers for threads: a FIFO stream is one, whose work
// may wait; it holds at most 4,096 pieces of work, and Enqueue waits while there are as many. Its
// destructor lets work finish for 10 virtual seconds, then unwinds it; at once when an exception
// destroys it, because what its work refers to may be gone by then. Waiting for an event or a
// stream is waiting of the fiber.
std::unique_ptr<device::Device> NewSimDevice(SimState& state, int rank);

}  // namespace lockstep::comm::sim
