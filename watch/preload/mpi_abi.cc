// Which of the two families this process has loaded: Open MPI's handles are addresses of its
// objects, MPICH's are fixed numbers.
#include "watch/preload/mpi_abi.h"

#include <dlfcn.h>
#include <link.h>

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

// The code of an object that was loaded, and its name; empty: that of the program's own file.
int LearnCode(dl_phdr_info* object, std::size_t, void* about) {
  const auto function = reinterpret_cast<std::uintptr_t>(about);
  for (int each = 0; each < object->dlpi_phnum; ++each) {
    const ElfW(Phdr)& part = object->dlpi_phdr[each];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    const Code code = {begin, begin + part.p_memsz};
    if (*object->dlpi_name == 0) {
      program_code = code;
    } else if (code.Holds(function)) {
      library_code = code;
    }
  }
  return 0;
}

}  // namespace

Abi abi;
Code program_code;
Code library_code;
std::atomic<bool> uses_files{false};

// Open MPI names its modules so, wherever they are. They come and go, as plugins of the program do,
// so nothing of them is kept.
bool IsModuleCode(std::uintptr_t at) {
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(at), &found) != 0) return false;
  const char* const path = found.dlfo_link_map->l_name;
  const char* const slash = std::strrchr(path, '/');
  return std::strncmp(slash ? slash + 1 : path, "mca_", 4) == 0;
}

// As the program's own references are bound: an object may have been copied into the program. Where
// Python loaded MPI in a scope of its own, none was.
Handle NamedHandle(const char* open_mpi, std::uint32_t mpich) {
  if (abi.handle_bytes == kMpich.handle_bytes) return {mpich};
  void* const bound = dlsym(RTLD_DEFAULT, open_mpi);
  return {reinterpret_cast<std::uintptr_t>(bound ? bound : FindFunction(open_mpi))};
}

bool LearnAbi() {
  if (FindFunction("ompi_mpi_comm_world")) {
    abi = kOpenMpi;
  } else if (IsMpich()) {
    abi = kMpich;
  } else {
    Say("its MPI is neither Open MPI nor MPICH");
    return false;
  }
#define LOCKSTEP_NAME(field, name, open_mpi, mpich) abi.field = NamedHandle(#open_mpi, mpich);
  LOCKSTEP_MPI_HANDLES(LOCKSTEP_NAME)
#undef LOCKSTEP_NAME
  dl_iterate_phdr(LearnCode, FindFunction("PMPI_Send"));
  return true;
}

}  // namespace lockstep::watch::preload
