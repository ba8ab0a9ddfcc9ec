// The MPI that launched us as a communicator. Nothing here is particular to one MPI.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "core/comm/communicator.h"

namespace lockstep::comm::mpi {

enum class MpiThreads {
  // MPI_THREAD_SINGLE, what MPI_Init gives a plain program: inline streams only. FUNNELED is not
  // free: with Open MPI 4.1 an 8-byte all-reduce of two ranks takes 0.72 us instead of 0.43.
  kCaller,
  kOneAtATime,  // MPI_THREAD_SERIALIZED: one stream in use at a time
  kMany,        // MPI_THREAD_MULTIPLE: a stream a communicator
};

struct MpiOptions {
  MpiThreads threads = MpiThreads::kCaller;
  // Of one call of the library, whose counts are ints; longer operations take several calls.
  std::int64_t most_elements_per_call = std::numeric_limits<int>::max();
};

// Known without initializing MPI. f16, bf16 and the floats of 8 bits, which MPI does not
// have, are reduced by operations of ours (MPI_Op_create). Splits wait for all ranks until their
// deadline, then call MPI_Comm_split.
const Capabilities& MpiCapabilities();

// First line of MPI_Get_library_version and the standard's version; needs no MPI_Init.
std::string MpiVersion();

// MPI_COMM_WORLD. Calls MPI_Init_thread unless someone did, and MPI_Finalize when this communicator
// and all its children are gone and none of them ever failed or passed a deadline; a process with a
// failed communicator must leave with _exit (finalizing could hang). MPI can be initialized once a
// process: a second life is kUnsupported. kEnvironment when the library lacks the thread level.
Result<std::unique_ptr<Communicator>> ConnectMpi(const MpiOptions& options = {});

}  // namespace lockstep::comm::mpi
