// Wrong programs, one a case.
#include <mpi.h>
#include <pthread.h>
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

// A loop of collectives which the last rank leaves before the others.
static void leaves_loop(int rank, int size, char* program) {
  (void)program;
  int value = 0, sum = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == 900 && rank == size - 1) break;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
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

// Nobody sees what the process does as another program, which is none of MPI.
static void becomes(int rank, int size, char* program) {
  (void)size, (void)program;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) execlp("true", "true", (char*)NULL);
}

// Rank 1 has too little room for each message, goes on, and waits for one more in the end.
static void too_small(int rank, int size, char* program) {
  enum { kWays = 8 };
  int values[3] = {0}, over = 0, index;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const MPI_Comm world = MPI_COMM_WORLD;
  (void)size, (void)program;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  for (int way = 0; rank == 0 && way < kWays; ++way) MPI_Send(values, 3, MPI_INT, 1, 5, world);
  if (rank == 1) {
    MPI_Recv(values, 2, MPI_INT, 0, 5, world, MPI_STATUS_IGNORE);
    MPI_Recv(values, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, values, 2, MPI_INT, 0, 5, world,
                 MPI_STATUS_IGNORE);
    MPI_Irecv(values, 2, MPI_INT, 0, 5, world, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Irecv(values, 2, MPI_INT, 0, 5, world, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Irecv(values, 2, MPI_INT, 0, 5, world, requests + 1);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Irecv(values, 2, MPI_INT, 0, 5, world, requests);
    while (!over) MPI_Test(requests, &over, MPI_STATUS_IGNORE);
    MPI_Recv_init(values, 2, MPI_INT, 0, 5, world, requests);
    MPI_Start(requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Request_free(requests);
    MPI_Recv(values, 3, MPI_INT, 0, 5, world, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(world);
}

// Rank 1 never comes to its neighbours.
static void alone(int rank, int size, char* program) {
  const int circle = 1;
  int got[2];
  MPI_Comm cart;
  MPI_Request request;
  (void)program;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &circle, 0, &cart);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, cart);
  if (rank != 1) {
    MPI_Ineighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, cart, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 1 never completes what it began on the window of rank 0.
static void uncompleted(int rank, int size, char* program) {
  const int other = 1 - rank;
  int value = 0;
  MPI_Group all, one;
  MPI_Win window;
  (void)size, (void)program;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  if (rank < 2) MPI_Group_incl(all, 1, &other, &one);
  if (rank == 0) MPI_Win_post(one, 0, window);
  if (rank == 0) MPI_Win_wait(window);
  if (rank == 1) MPI_Win_start(one, 0, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 0 never unlocks the window of the last rank.
static void locked(int rank, int size, char* program) {
  int value = 0;
  void* memory;
  MPI_Win window;
  (void)program;
  MPI_Win_allocate(sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, window);
    MPI_Put(&value, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
    MPI_Win_flush(size - 1, window);
  }
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, window);
    MPI_Get(&value, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
    MPI_Win_unlock(size - 1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Both threads of all ranks wait for the next one.
static void* receive_next(void* next) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, *(int*)next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}
static void thread_receives(int rank, int size, char* program) {
  int next = (rank + 1) % size, value = 0;
  pthread_t other;
  (void)program;
  pthread_create(&other, NULL, receive_next, &next);
  MPI_Recv(&value, 1, MPI_INT, next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  pthread_join(other, NULL);
}

// The root gathers something of each, and the last rank waits for it.
static void gathers(int rank, int size, char* program) {
  int all[16], counts[16], places[16], value = 0;
  (void)program;
  for (int each = 0; each < size; ++each) counts[each] = 1, places[each] = each;
  if (rank == size - 1) MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Gatherv(&rank, 1, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, size - 1, 2, MPI_COMM_WORLD);
}

Case* wrong_case(const char* name) {
  static const struct {
    const char* name;
    Case* run;
  } kCases[] = {
      {"outrun", outrun},
      {"roots", roots},
      {"swapped", swapped},
      {"exits", exits},
      {"becomes", becomes},
      {"ungrouped", ungrouped},
      {"unmerged", unmerged},
      {"unbridged", unbridged},
      {"too_small", too_small},
      {"leaves_loop", leaves_loop},
      {"alone", alone},
      {"uncompleted", uncompleted},
      {"locked", locked},
      {"gathers", gathers},
      {"thread_receives", thread_receives},
  };
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (strcmp(name, kCases[each].name) == 0) return kCases[each].run;
  }
  return NULL;
}
