// Whether this watcher is around a launcher, or one of many that a launcher started; then how they
// meet.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/control/context.h"
#include "core/control/rendezvous/endpoint.h"

namespace lockstep::watch::run {

struct Launch {
  enum class Way {
    kAlone,          // around a launcher, or of one rank
    kOneHost,        // at a unix socket that is named after the job
    kOverMpi,        // the programs' own MPI carries the endpoint, in MPI_Init
    kMasterAddress,  // at a port of MASTER_ADDR, as PyTorch's ranks do
  };
  Way way = Way::kAlone;
  control::LaunchContext context;
  // kMasterAddress: where rank 0's watcher listens.
  control::rendezvous::Endpoint endpoint;
};

// An error says why the watchers cannot meet.
Result<Launch> FindLaunch();

}  // namespace lockstep::watch::run
