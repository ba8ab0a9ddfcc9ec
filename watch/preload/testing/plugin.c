// What a program loads while it runs, and unloads.
#include <mpi.h>

void work(void) {
  int one = 1, sum = 0;
  for (int round = 0; round < 10; ++round) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
}

// A whole program, for one that loads MPI only with it: as Python's mpi4py does. `wrong`: rank 0
// waits for a message that rank 1 never sends.
void program(int wrong) {
  int rank = 0, number = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (wrong && rank == 0) {
    MPI_Recv(&number, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  work();
  MPI_Finalize();
}
