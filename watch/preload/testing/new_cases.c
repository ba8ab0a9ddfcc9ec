// Programs that use what came with MPI 4, right and wrong. A library may lack it.
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "watch/preload/testing/more_cases.h"

#if MPI_VERSION < 4
extern int MPI_Send_c(void) __attribute__((weak));
extern int MPI_Isendrecv(void) __attribute__((weak));
#endif

// Where a call is absent, it stays so.
static void asks(int rank, int size, char* program) {
  (void)size, (void)program;
  void (*volatile sends)(void) = (void (*)(void))MPI_Send_c;
  void (*volatile exchanges)(void) = (void (*)(void))MPI_Isendrecv;
  if (rank > 0) return;
  printf("linked: %d %d\n", sends != NULL, exchanges != NULL);
  printf("asked for: %d %d\n", dlsym(RTLD_DEFAULT, "MPI_Send_c") != NULL,
         dlsym(RTLD_DEFAULT, "PMPI_Barrier_init") != NULL);
}

#if MPI_VERSION >= 4
enum { kMany = 64, kRounds = 5 };

// Ranks call the same with counts of either size.
static void sizes(int rank, int size, char* program) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out[kMany] = {0}, in[kMany];
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Request requests[2];
  MPI_Datatype type;
  (void)program;
  for (int round = 0; round < kRounds; ++round) {
    if (rank == 0) MPI_Send_c(out, kMany, MPI_INT, right, 1, comm);
    if (rank == 0) MPI_Send(out, 1, MPI_DOUBLE, right, 1, comm);
    if (rank == 1) MPI_Recv(in, kMany, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Recv_c(in, 1, MPI_DOUBLE, left, 1, comm, MPI_STATUS_IGNORE);
    MPI_Irecv_c(in, kMany, MPI_INT, left, 2, comm, requests);
    MPI_Isend(out, kMany, MPI_INT, right, 2, comm, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Allreduce_c(out, in, 1, MPI_INT, MPI_SUM, comm);
    if (rank != 0) MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 0) MPI_Ibcast(out, 2, MPI_INT, 0, comm, requests);
    if (rank != 0) MPI_Ibcast_c(out, 2, MPI_INT, 0, comm, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Type_contiguous_c(4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv_c(out, 1, type, right, 3, in, 4, MPI_INT, left, 3, comm, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
  }
}

// Who sends and receives in one request meets those who do so in one call, or in two.
static void exchanges(int rank, int size, char* program) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out[kMany] = {0}, in[kMany];
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Request requests[2];
  (void)program;
  for (int round = 0; round < kRounds; ++round) {
    if (rank == 0) {
      MPI_Isendrecv(out, kMany, MPI_INT, right, 1, in, kMany, MPI_INT, left, 1, comm, requests);
      MPI_Isendrecv_replace_c(out, 2, MPI_DOUBLE, right, 1, left, 1, comm, requests + 1);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Sendrecv(out, kMany, MPI_INT, right, 1, in, kMany, MPI_INT, left, 1, comm,
                   MPI_STATUS_IGNORE);
      MPI_Sendrecv_replace(out, 2, MPI_DOUBLE, right, 1, left, 1, comm, MPI_STATUS_IGNORE);
    }
    MPI_Isendrecv(out, 1, MPI_INT, right, 2, in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                  requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
  }
}

static void partitions(int rank, int size, char* program) {
  int value = 0;
  MPI_Request request;
  (void)size, (void)program;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < kRounds; ++round) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  if (rank > 1) return;
  if (rank == 0) {
    MPI_Psend_init(&value, 1, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(&value, 1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  }
  MPI_Start(&request);
  if (rank == 0) MPI_Pready(0, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

// Communicators that are not followed have handles of those that were freed.
static void unfollowed(int rank, int size, char* program) {
  MPI_Comm first, second;
  MPI_Group all;
  MPI_Request request;
  int sum = 0;
  (void)size, (void)program;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_free(&first);
    if (round % 2 == 0) {
      MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &second, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Comm_create_from_group(all, "unfollowed", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, second);
    MPI_Comm_free(&second);
  }
  MPI_Group_free(&all);
}

static void receives_large(int rank, int size, char* program) {
  int value = 0;
  (void)program;
  MPI_Recv_c(&value, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// What the first two send arrives, and nobody receives it.
static void exchanges_tags(int rank, int size, char* program) {
  int out = 0, in = 0;
  MPI_Request request;
  (void)size, (void)program;
  if (rank < 2) {
    MPI_Isendrecv(&out, 1, MPI_INT, 1 - rank, 1, &in, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void exchanges_one_way(int rank, int size, char* program) {
  int out = 0, in = 0;
  MPI_Request request;
  (void)size, (void)program;
  if (rank == 0) {
    MPI_Isendrecv(&out, 1, MPI_INT, 1, 1, &in, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
#endif

Case* new_case(const char* name) {
  static const struct {
    const char* name;
    Case* run;
  } kCases[] = {
    {"asks", asks},
#if MPI_VERSION >= 4
    {"sizes", sizes},
    {"exchanges", exchanges},
    {"partitions", partitions},
    {"unfollowed", unfollowed},
    {"receives_large", receives_large},
    {"exchanges_tags", exchanges_tags},
    {"exchanges_one_way", exchanges_one_way},
#endif
  };
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (strcmp(name, kCases[each].name) == 0) return kCases[each].run;
  }
  return NULL;
}
