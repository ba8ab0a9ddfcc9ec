// One call of MPI: a whole operation, or a part of one that fits the library's int counts.
#pragma once

#include <mpi.h>

#include "core/base/status.h"
#include "core/collective/collective.h"

namespace lockstep::comm::mpi {

struct MpiCall {
  collective::Collective collective = collective::Collective::kBarrier;
  const void* send = nullptr;  // or MPI_IN_PLACE
  void* recv = nullptr;        // broadcast: the one buffer
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
};

// The blocking call of this operation, and nothing else: returns what MPI returns.
int BlockingCall(const MpiCall& call, MPI_Comm comm);
Status BlockingError(const MpiCall& call, int code);

// The non-blocking call; `request` completes it.
Status PostCall(const MpiCall& call, MPI_Comm comm, MPI_Request& request);

}  // namespace lockstep::comm::mpi
