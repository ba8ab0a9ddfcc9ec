#include "core/launch/rendezvous/mpi_gather.h"

namespace lockstep::launch::rendezvous {

Result<std::vector<std::string>> MpiGather(const std::string&, bool, bool) {
  return Unsupported("this program was built without MPI, so its ranks must be on one host");
}

}  // namespace lockstep::launch::rendezvous
