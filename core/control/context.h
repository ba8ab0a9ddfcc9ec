// Who we are in a launch, as the launcher's environment says, before any library is asked.
#pragma once

#include <string>
#include <vector>

#include "core/base/process_stat.h"
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
  // What tells this launch's rank from all others: "NAME=value" as the launcher set it.
  std::vector<std::string> settings = {};

  bool single_host() const { return local_size == size; }
};

// Errors (kInvalidInput) name the variable that cannot be understood.
Result<LaunchContext> DetectLaunch();

// Environment variables that launchers set for their ranks.
inline constexpr int kMostRanks = 1 << 20;

using lockstep::VariableText;

// kInvalidInput names the variable; `remedy` ends the message.
Result<int> VariableNumber(const char* name, int least, int most, const char* remedy);

}  // namespace lockstep::control
