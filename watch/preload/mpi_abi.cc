// Which of the two families this process has loaded: Open MPI's handles are addresses of its
// objects, MPICH's are fixed numbers.
#include "watch/preload/mpi_abi.h"

#include <dlfcn.h>

#include "watch/preload/real.h"

namespace lockstep::watch::preload {
namespace {

// May be asked before MPI_Init.
bool IsMpich() {
  const auto version = Real<int(char*, int*)>("PMPI_Get_library_version");
  char text[8192] = "";  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the greatest
  int length = 0;
  return version && version(text, &length) == kMpiSuccess && std::strncmp(text, "MPICH ", 6) == 0;
}

}  // namespace

Abi abi;

// As the program's own references are bound: an object may have been copied into the program.
Handle NamedHandle(const char* open_mpi, std::uint32_t mpich) {
  if (abi.handle_bytes == kMpich.handle_bytes) return {mpich};
  return {reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, open_mpi))};
}

bool LearnAbi() {
  if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world")) {
    abi = kOpenMpi;
  } else if (IsMpich()) {
    abi = kMpich;
  } else {
    return false;
  }
#define LOCKSTEP_NAME(field, name, open_mpi, mpich) abi.field = NamedHandle(#open_mpi, mpich);
  LOCKSTEP_MPI_HANDLES(LOCKSTEP_NAME)
#undef LOCKSTEP_NAME
  return true;
}

}  // namespace lockstep::watch::preload
