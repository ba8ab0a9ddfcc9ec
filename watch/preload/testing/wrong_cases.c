// Wrong programs, one a case.
#include <mpi.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/preload/testing/more_cases.h"

// Rank 0 leaves its broadcast before anybody comes to it.
static void outrun(int rank, int size, char* program) {
  (void)size, (void)program;
  int value = 0, sum = 0;
  if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank != 0) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

// All wait for another root.
static void roots(int rank, int size, char* program) {
  (void)program;
  int value = 0;
  MPI_Bcast(&value, 1, MPI_INT, (rank + 1) % size, MPI_COMM_WORLD);
}

// The library goes on, and so does the program.
static void swapped(int rank, int size, char* program) {
  (void)size, (void)program;
  int value = 0;
  if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

// The last rank never comes to a call that makes a communicator of some ranks.
static void ungrouped(int rank, int size, char* program) {
  (void)program;
  MPI_Group everybody;
  MPI_Comm made;
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  if (rank < size - 1) MPI_Comm_create_group(MPI_COMM_WORLD, everybody, 5, &made);
}
static void unmerged(int rank, int size, char* program) {
  (void)program;
  MPI_Comm side, both, made;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 5, &both);
  if (rank < size - 1) MPI_Intercomm_merge(both, 0, &made);
}
static void unbridged(int rank, int size, char* program) {
  (void)program;
  int value = 0;
  MPI_Comm side, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &side);
  if (rank < size - 1) MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 5, &both);
  if (rank == size - 1) MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Nothing that runs at an exit runs at these. A child that shares the memory ends, too.
static void exits(int rank, int size, char* program) {
  (void)size, (void)program;
  const pid_t child = vfork();
  if (child == 0) _exit(4);
  waitpid(child, NULL, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) _exit(3);
  MPI_Barrier(MPI_COMM_WORLD);
}

Case* wrong_case(const char* name) {
  static const struct {
    const char* name;
    Case* run;
  } kCases[] = {
      {"outrun", outrun},       {"roots", roots},       {"swapped", swapped},     {"exits", exits},
      {"ungrouped", ungrouped}, {"unmerged", unmerged}, {"unbridged", unbridged},
  };
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (strcmp(name, kCases[each].name) == 0) return kCases[each].run;
  }
  return NULL;
}
