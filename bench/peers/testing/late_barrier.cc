// An LD_PRELOAD library that lets one rank come late, for tests of arrival skew: a rank that is
// held up on its own between two collectives.
//
//   LATE_RANK=1 LATE_US=5000
//   each MPI_Barrier of that rank returns so much later
#include <mpi.h>
#include <unistd.h>

#include <algorithm>

#include "bench/peers/testing/settings.h"

using lockstep::bench::peers::NumberFrom;

namespace {

constexpr double kAwakeUs = 300;  // a sleep can be so much longer than it was asked to be

}  // namespace

extern "C" int MPI_Barrier(MPI_Comm comm) {
  static const double late_s = NumberFrom("LATE_US", 5000) * 1e-6;
  static const int late_rank = static_cast<int>(NumberFrom("LATE_RANK", 1));
  static int rank = -1;
  if (rank < 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int code = PMPI_Barrier(comm);
  const double left = PMPI_Wtime();
  // Who sleeps most of the time is let run when it wakes, also on a machine with other work.
  if (rank == late_rank) usleep(static_cast<useconds_t>(std::max(late_s * 1e6 - kAwakeUs, 0.0)));
  while (rank == late_rank && PMPI_Wtime() - left < late_s) {
  }
  return code;
}
