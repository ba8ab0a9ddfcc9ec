#include "core/control/rendezvous/mpi_gather.h"

namespace lockstep::control::rendezvous {

Result<std::vector<std::string>> MpiGather(const std::string&, bool, bool) {
  return Unsupported("this program was built without MPI, so its ranks must be on one host");
}

}  // namespace lockstep::control::rendezvous
