#include "core/control/rendezvous/testing/mpi_probe.h"

#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

namespace lockstep::control::rendezvous {

std::string ProbeMpiInit() {
  int was = 0, rank = -1, size = -1;
  MPI_Initialized(&was);
  if (!was) MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return fmt::format("rank {} of {}, was {}", rank, size, was);
}

std::string ProbeMpiLoop(long iterations, journal::JournalWriter& journal) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long i = 0; iterations == 0 || i < iterations; ++i) {
    journal::JournalEvent event;
    event.kind = journal::EventKind::kStart;
    event.sequence = static_cast<std::uint64_t>(i);
    journal.Append(event);
    long own = i, sum = -1;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (sum != i * size) return fmt::format("{} instead of {}", sum, i * size);
    event.kind = journal::EventKind::kEnd;
    journal.Append(event);
    usleep(100);
  }
  return "sums are right";
}

std::string ProbeMpiFinalize() {
  MPI_Finalize();
  return "finalized";
}

}  // namespace lockstep::control::rendezvous
