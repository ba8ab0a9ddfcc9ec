// All ranks' texts, gathered by the MPI that launched us.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::control::rendezvous {

// Initializes MPI (MPI_THREAD_SINGLE, or _SERIALIZED for a process that is going to call it on
// threads: the first call decides that for its life) unless it is, and returns `part` of every rank
// of MPI_COMM_WORLD. Unless `keep_initialized`, MPI is finalized: a process can do that only once.
// kEnvironment when MPI fails, kUnsupported when this program was built without MPI.
Result<std::vector<std::string>> MpiGather(const std::string& part, bool keep_initialized,
                                           bool on_threads);

}  // namespace lockstep::control::rendezvous
