// What a program loads while it runs, and unloads.
#include <mpi.h>

void work(void) {
  int one = 1, sum = 0;
  for (int round = 0; round < 10; ++round) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
}
