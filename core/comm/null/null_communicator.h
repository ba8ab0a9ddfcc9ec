// The backend that does nothing, at once: what remains of a measurement is our own overhead.
#pragma once

#include <memory>

#include "core/comm/communicator.h"

namespace lockstep::comm::null {

// Moves no data and waits for nobody: a barrier is none either.
const Capabilities& NullCapabilities();

// `meeting`, where there is one, is used by Split and outlives the communicator and its children;
// without one Split is kUnsupported.
Result<std::unique_ptr<Communicator>> ConnectNull(int rank, int size, Meeting* meeting = nullptr);

}  // namespace lockstep::comm::null
