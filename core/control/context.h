// Who we are in a launch, as the launcher's environment says, before any library is asked.
#pragma once

#include <string>

#include "core/base/status.h"

namespace lockstep::control {

// Read from what PMIx, PMI and Slurm launchers set (OMPI_COMM_WORLD_*, PMI_*, MPI_LOCAL*, SLURM_*),
// and torchrun (pytorch.h).
struct LaunchContext {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  // "openmpi", "pmi", "slurm", "torchrun", "pytorch" (its variables, set by hand), or "none":
  // started without a launcher.
  std::string launcher;
  std::string job;  // the same on all ranks of this launch on this host, unique here; may be empty

  bool single_host() const { return local_size == size; }
};

// Errors (kInvalidInput) name the variable that cannot be understood.
Result<LaunchContext> DetectLaunch();

}  // namespace lockstep::control
