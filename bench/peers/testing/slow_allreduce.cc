// An LD_PRELOAD library that makes MPI_Allreduce longer on one rank, for tests of comparisons:
// a congested link or a busy core of one rank.
//
//   SLOW_RANK=1 SLOW_PERCENT=5
//   each call of that rank takes so many percent longer than it took, after its result is there, so
//   that its peers do not wait for it
#include <mpi.h>

#include "bench/peers/testing/settings.h"

using lockstep::bench::peers::NumberFrom;

extern "C" int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  static const double part = NumberFrom("SLOW_PERCENT", 5) / 100;
  static const int slow_rank = static_cast<int>(NumberFrom("SLOW_RANK", 1));
  static int rank = -1;
  if (rank < 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double entered = PMPI_Wtime();
  const int code = PMPI_Allreduce(send, recv, count, type, op, comm);
  if (rank != slow_rank) return code;
  const double left = PMPI_Wtime();
  while (PMPI_Wtime() - left < part * (left - entered)) {
  }
  return code;
}
