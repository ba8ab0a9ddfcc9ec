// Small MPI programs, right and wrong, one a case: `cases NAME`. They know nothing of Lockstep.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, value;
static MPI_Status status;
static const char* path;  // `cases NAME PATH`

static void ring(void) {
  int got = -1;
  MPI_Request requests[2];
  for (int round = 0; round < 50; ++round) {
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, round, MPI_COMM_WORLD, requests);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, round, MPI_COMM_WORLD, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&got, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("rank %d: %d\n", rank, value);
}

static void master(void) {
  if (rank > 0) {
    for (int round = 0; round < 20; ++round) {
      MPI_Send(&rank, 1, MPI_INT, 0, round, MPI_COMM_WORLD);
    }
    return;
  }
  for (int message = 0; message < 20 * (size - 1); ++message) {
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  }
}

static void objects(void) {
  MPI_Comm half, copy;
  MPI_Datatype row, column;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Comm_dup(half, &copy);
  MPI_Type_contiguous(4, MPI_INT, &row);
  MPI_Type_vector(4, 1, 4, MPI_INT, &column);
  MPI_Type_commit(&row);
  MPI_Type_commit(&column);
  int matrix[16] = {0};
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Sendrecv(matrix, 1, row, right, 0, matrix, 1, column, left, 0, MPI_COMM_WORLD, &status);
  MPI_Bcast(matrix, rank < 2 ? 4 : 1, rank < 2 ? MPI_INT : row, 0, copy);
  MPI_Type_free(&row);
  MPI_Type_free(&column);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

// Open MPI gives all sends that are over at once the same handle.
static void window(void) {
  enum { kWindow = 64 };
  MPI_Request requests[2 * kWindow];
  for (int round = 0; round < 20; ++round) {
    for (int each = 0; each < kWindow; ++each) {
      MPI_Irecv(&value, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, requests + each);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int each = 0; each < kWindow; ++each) {
      MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, requests + kWindow + each);
    }
    MPI_Waitall(2 * kWindow, requests, MPI_STATUSES_IGNORE);
  }
}

static void poll(void) {
  MPI_Request request;
  int over = 0;
  if (rank == 0) {
    MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    while (!over) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    usleep(300000);
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
}

static void slow(void) {
  if (rank == 0) usleep(1500000);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void receives(void) {
  MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &status);
}

static void tag(void) {
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &status);
}

static void mismatch(void) {
  int sum = 0;
  if (rank == 1) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank != 1) MPI_Barrier(MPI_COMM_WORLD);
}

static void invalid(void) { MPI_Send(&value, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD); }

static void leak(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
}

static void leaves(void) {
  if (rank == 1) exit(0);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void killed(void) {
  if (rank == 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void stopped(void) {
  if (rank == 1) raise(SIGSTOP);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void wait_for(const char* ending) {
  char file[4096];
  snprintf(file, sizeof file, "%s%s", path, ending);
  while (access(file, F_OK) != 0) usleep(1000);
}

// Rank 1 is late where files say so: to a barrier, then with a message.
static void late(void) {
  if (rank == 1) wait_for(".barrier");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) wait_for(".message");
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &status);
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
}

// The receive that nobody sends is the last event of a chunk (4096).
static void edge(void) {
  MPI_Send(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &status);
  for (int round = 0; round < 2043; ++round) MPI_Barrier(MPI_COMM_SELF);
  receives();
}

static void many(void) {
  for (int round = 0; round < 2000000; ++round) {
    MPI_Send(&value, 1, MPI_INT, rank, round & 1023, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, rank, round & 1023, MPI_COMM_WORLD, &status);
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} kCases[] = {
    {"ring", ring},       {"master", master},     {"objects", objects}, {"poll", poll},
    {"slow", slow},       {"receives", receives}, {"tag", tag},         {"mismatch", mismatch},
    {"invalid", invalid}, {"leak", leak},         {"leaves", leaves},   {"killed", killed},
    {"stopped", stopped}, {"many", many},         {"late", late},       {"edge", edge},
    {"window", window},
};

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  path = count > 2 ? words[2] : "";
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (count > 1 && strcmp(words[1], kCases[each].name) == 0) kCases[each].run();
  }
  MPI_Finalize();
  return 0;
}
