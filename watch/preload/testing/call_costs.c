// Processor time of calls that wait for nobody, in nanoseconds: the least of some rows of each.
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kRows = 10, kCalls = 200000, kSlowCalls = 20000 };

static float in[2], out[2];

static void barrier(void) { MPI_Barrier(MPI_COMM_SELF); }
static void reduction(void) { MPI_Allreduce(in, out, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF); }

// More than the watcher takes for one loop (kMostAgain).
static void five(void) {
  barrier();
  MPI_Bcast(in, 1, MPI_FLOAT, 0, MPI_COMM_SELF);
  reduction();
  MPI_Bcast(in, 2, MPI_FLOAT, 0, MPI_COMM_SELF);
  barrier();
}

static void message(void) {
  MPI_Request request;
  MPI_Irecv(out, 1, MPI_FLOAT, 0, 1, MPI_COMM_SELF, &request);
  MPI_Send(in, 1, MPI_FLOAT, 0, 1, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void measure(const char* name, void (*call)(void), int calls) {
  double best = 0;
  for (int row = 0; row < kRows; ++row) {
    const double begin = now_ns();
    for (int each = 0; each < calls; ++each) call();
    const double ns = (now_ns() - begin) / calls;
    if (row == 0 || ns < best) best = ns;
  }
  printf("%s: %.1f\n", name, best);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  measure("MPI_Barrier, again and again", barrier, kCalls);
  measure("MPI_Allreduce of two floats, again and again", reduction, kCalls);
  measure("five different collectives in turn", five, kSlowCalls);
  measure("MPI_Irecv, MPI_Send and MPI_Wait", message, kSlowCalls);
  MPI_Finalize();
  return 0;
}
