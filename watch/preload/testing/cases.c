// Small MPI programs, right and wrong, one a case: `cases NAME`. They know nothing of Lockstep.
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/preload/testing/more_cases.h"

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

// The library ends the launch.
static void truncated(void) {
  int values[3] = {0};
  if (rank == 0) MPI_Send(values, 3, MPI_INT, 1, 5, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(values, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
  MPI_Barrier(MPI_COMM_WORLD);
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
  for (int found; access(file, F_OK) != 0; usleep(1000))  // it never finds anything
    MPI_Iprobe(rank, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
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
  for (int round = 0; round < 1362; ++round) {  // three events each
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 3, &value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &status);
  }
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Barrier(MPI_COMM_SELF);
  receives();
}

// 10^7 calls. Each fiftieth of them waits for a file.
static void many(void) {
  char ending[16];
  for (int part = 0; part < 50; ++part) {
    for (int round = 0; round < 100000; ++round) {
      MPI_Send(&value, 1, MPI_INT, rank, round & 1023, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_INT, rank, round & 1023, MPI_COMM_WORLD, &status);
    }
    snprintf(ending, sizeof ending, ".%d", part);
    wait_for(ending);
  }
}

// Calls until a file says that it is enough.
static void busy(void) {
  char file[4096];
  snprintf(file, sizeof file, "%s.enough", path);
  for (int over = 0; !over;) {
    for (int round = 0; round < 1000; ++round) {
      MPI_Sendrecv(&rank, 1, MPI_INT, 0, 3, &value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &status);
    }
    over = access(file, F_OK) == 0;
  }
  printf("rank %d is through\n", rank);
}

static void probes(void) {
  MPI_Message message;
  int there = 0;
  if (rank > 0) {
    MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    return;
  }
  for (int from = 1; from < size; ++from) {
    for (there = 0; !there;) MPI_Iprobe(from, 1, MPI_COMM_WORLD, &there, &status);
    MPI_Recv(&value, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (there = 0; !there;) MPI_Improbe(from, 2, MPI_COMM_WORLD, &there, &message, &status);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
  }
}

// Messages that are probed, then received by a request; one of these is never awaited.
static void probed(int waits) {
  MPI_Message message;
  MPI_Request request;
  if (rank > 0) MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  for (int from = 1; rank == 0 && from < size; ++from) {
    int there = 0;
    while (!there) MPI_Improbe(from, 1, MPI_COMM_WORLD, &there, &message, &status);
    MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
    if (waits || from > 1) MPI_Wait(&request, &status);
  }
}
static void imrecv(void) { probed(1); }
static void unawaited(void) { probed(0); }

// Rank 0 waits for any of two: a receive, whose sender waits for rank 0, and a large exchange of
// neighbours.
static void neighbors(void) {
  enum { kCount = 16 << 20 };
  const int circle = 1;
  MPI_Comm cart;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int which = 0;
  char* const data = calloc(2, kCount);
  char* const got = calloc(2, kCount);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &circle, 0, &cart);
  MPI_Ineighbor_alltoall(data, kCount, MPI_CHAR, got, kCount, MPI_CHAR, cart, requests);
  if (rank == 0) {
    MPI_Irecv(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, requests + 1);
    MPI_Waitany(2, requests, &which, &status);
    MPI_Send(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Recv(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &status);
    MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&cart);
  free(data);
  free(got);
}

static void forks(void) {
  const pid_t child = fork();
  if (child == 0) exit(0);
  waitpid(child, NULL, 0);
  const pid_t other = fork();
  if (other == 0) {
    execl("/bin/sh", "sh", "-c", "exit 3", (char*)NULL);
    _exit(1);
  }
  waitpid(other, NULL, 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void communicators(void) {
  enum { kMany = 512 };
  static MPI_Comm copies[kMany];
  int sum = 0;
  for (int each = 0; each < kMany; ++each) MPI_Comm_dup(MPI_COMM_WORLD, copies + each);
  for (int each = 0; each < kMany; ++each) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copies[each]);
  }
  for (int each = 0; each < kMany; ++each) MPI_Comm_free(copies + each);
}

// Rank 0 is in communicators that others are not, made on the same parent. All use the last ones.
static void regroups(void) {
  MPI_Comm made[6];
  MPI_Group everybody, some;
  int sum = 0;
  MPI_Comm_split(MPI_COMM_WORLD, 0, 0, made);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, made + 1);
  if (rank == 0) MPI_Barrier(made[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, 0, made + 2);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made[2]);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  const int pairs[3][2] = {{0, 1}, {0, 2}, {0, 1}};
  for (int each = 0; each < 3; ++each) {
    MPI_Group_incl(everybody, 2, pairs[each], &some);
    if (rank == pairs[each][0] || rank == pairs[each][1]) {
      MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, made + 3 + each);
      each == 1 ? MPI_Barrier(made[4])
                : MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made[3 + each]);
      MPI_Comm_free(made + 3 + each);
    }
    MPI_Group_free(&some);
  }
  MPI_Group_free(&everybody);
  MPI_Comm_free(made + 2);
  if (rank == 0) MPI_Comm_free(made + 1);
  MPI_Comm_free(made);
}

enum { kThreads = 4, kRounds = 5000 };
static MPI_Comm comm_of[kThreads];

static void* one_thread(void* number) {
  const int tag = *(const int*)number;
  MPI_Status own;
  for (int round = 0; round < kRounds; ++round) {
    int sent = round, got = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, 0, tag, &got, 1, MPI_INT, 0, tag, comm_of[tag], &own);
    if (got != round) abort();
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[kThreads];
  int numbers[kThreads];
  for (int each = 0; each < kThreads; ++each) MPI_Comm_dup(MPI_COMM_SELF, comm_of + each);
  for (int each = 0; each < kThreads; ++each) {
    numbers[each] = each;
    pthread_create(all + each, NULL, one_thread, numbers + each);
  }
  for (int each = 0; each < kThreads; ++each) pthread_join(all[each], NULL);
  for (int each = 0; each < kThreads; ++each) MPI_Comm_free(comm_of + each);
}

// Calls of a library that is gone when the next ones come.
static void plugin(void) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  void (*work)(void) = (void (*)(void))dlsym(library, "work");
  work();
  dlclose(library);
  receives();
}

static const struct {
  const char* name;
  void (*run)(void);
} kCases[] = {
    {"ring", ring},
    {"master", master},
    {"objects", objects},
    {"poll", poll},
    {"slow", slow},
    {"receives", receives},
    {"tag", tag},
    {"mismatch", mismatch},
    {"invalid", invalid},
    {"leak", leak},
    {"leaves", leaves},
    {"killed", killed},
    {"stopped", stopped},
    {"many", many},
    {"late", late},
    {"edge", edge},
    {"probes", probes},
    {"window", window},
    {"regroups", regroups},
    {"imrecv", imrecv},
    {"unawaited", unawaited},
    {"neighbors", neighbors},
    {"busy", busy},
    {"forks", forks},
    {"plugin", plugin},
    {"threads", threads},
    {"truncated", truncated},
    {"communicators", communicators},
};

int main(int count, char** words) {
  int level = MPI_THREAD_SINGLE;
  if (count > 1 && strncmp(words[1], "thread", strlen("thread")) == 0) {
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
    if (level != MPI_THREAD_MULTIPLE) return 77;
  } else {
    MPI_Init(&count, &words);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  path = count > 2 ? words[2] : "";
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (count > 1 && strcmp(words[1], kCases[each].name) == 0) kCases[each].run();
  }
  Case* (*const more_cases[])(const char*) = {right_case, library_case, new_case, wrong_case};
  for (int each = 0; count > 1 && each < 4; ++each) {
    Case* const more = more_cases[each](words[1]);
    if (more) more(rank, size, words[0]);
  }
  MPI_Finalize();
  if (count > 1 && strcmp(words[1], "again") == 0) {
    execl(words[0], words[0], "ring", (char*)NULL);
    return 1;
  }
  return 0;
}
