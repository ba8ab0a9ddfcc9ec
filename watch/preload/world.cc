#include "watch/preload/world.h"

#include <cstdio>
#include <cstdlib>

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

bool LaunchedAs(int* rank, int* size) {
  constexpr const char* kNames[][2] = {{"RANK", "WORLD_SIZE"},
                                       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                       {"PMI_RANK", "PMI_SIZE"},
                                       {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const auto& names : kNames) {
    const char* const mine = std::getenv(names[0]);
    const char* const all = std::getenv(names[1]);
    if (!mine || !all) continue;
    *rank = std::atoi(mine);
    *size = std::atoi(all);
    return *rank >= 0 && *rank < *size;
  }
  return false;
}

bool BeginWatching(int rank, int size, const char* else_by) {
  AnyThreadCalls();
  if (internal::header) return true;
  if (!OpenSegment()) return false;
  const char* const host = std::getenv("MASTER_ADDR");
  const char* const port = std::getenv("MASTER_PORT");
  char* const job = internal::header->job;
  if (host && port) {
    std::snprintf(job, sizeof internal::header->job, "%s:%s", host, port);
  } else if (*job == 0) {
    std::snprintf(job, sizeof internal::header->job, "%s", else_by);
  }
  SetRank(rank, size, false);
  return true;
}

}  // namespace lockstep::watch::preload
