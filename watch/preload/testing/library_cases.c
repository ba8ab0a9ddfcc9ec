// Right programs that see more of their library than others do: it calls MPI itself, gives handles
// that it gave before, leaves parts of a status as they were.
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/preload/testing/more_cases.h"

enum { kRounds = 5 };

// Only the first rank writes: ROMIO makes a communicator and calls on it, in a call of MPI that is
// not watched.
static void shared_file(int rank, int size, char* program) {
  MPI_File file;
  (void)size, (void)program;
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  MPI_File_open(MPI_COMM_WORLD, "shared_file.data", mode, MPI_INFO_NULL, &file);
  if (rank == 0) MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_set_size(file, 4096);
  MPI_File_close(&file);
}

static void exchange(int rank, int size, MPI_Datatype type) {
  double out[64] = {0}, in[64];
  MPI_Sendrecv(out, 1, type, (rank + 1) % size, 0, in, 1, type, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Types that need no commit, and one that a freed handle still stands for.
static void given_types(int rank, int size, char* program) {
  MPI_Datatype freed[8], inner, outer, given;
  int count = 0;
  MPI_Aint place = 0;
  (void)program;
  for (int each = 0; each < 8; ++each) {
    MPI_Type_contiguous(2, MPI_DOUBLE, freed + each);
    MPI_Type_commit(freed + each);
  }
  for (int each = 0; each < 8; ++each) MPI_Type_free(freed + each);
  MPI_Type_create_f90_real(15, 307, &given);
  exchange(rank, size, given);
  MPI_Type_contiguous(2, MPI_DOUBLE, &inner);
  MPI_Type_commit(&inner);
  MPI_Type_contiguous(2, inner, &outer);
  MPI_Type_free(&inner);
  MPI_Type_get_contents(outer, 1, 0, 1, &count, &place, &given);
  exchange(rank, size, given);
  MPI_Type_free(&given);
  MPI_Type_free(&outer);
}

// What a type was made of may be given with the handle that the program has: it frees both.
static void shared_types(int rank, int size, char* program) {
  MPI_Datatype inner, outer, given;
  int count = 0;
  MPI_Aint place = 0;
  (void)program;
  MPI_Type_contiguous(2, MPI_DOUBLE, &inner);
  MPI_Type_commit(&inner);
  MPI_Type_contiguous(2, inner, &outer);
  MPI_Type_get_contents(outer, 1, 0, 1, &count, &place, &given);
  MPI_Type_free(&given);
  exchange(rank, size, inner);
  MPI_Type_free(&inner);
  MPI_Type_free(&outer);
}

// Statuses are where anything was before.
static void statuses(int rank, int size, char* program) {
  MPI_Message message;
  MPI_Status status;
  int value = 0;
  (void)program;
  for (int round = 0; round < kRounds * (size - 1); ++round) {
    for (int tag = 1; tag <= 2 && rank > 0 && round < kRounds; ++tag) {
      MPI_Send(&rank, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    }
    for (int tag = 1; tag <= 2 && rank == 0; ++tag) {
      memset(&status, 0xff, sizeof status);
      int there = tag == 1;
      if (there) MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &message, &status);
      while (!there) {
        MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &message, &status);
      }
      MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
  }
}

static void* rest_of_program(void* unused) {
  sleep(2);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  exit(0);
  return unused;
}

// The main thread of rank 0 ends, and its process goes on. The others wait for it.
static void main_leaves(int rank, int size, char* program) {
  pthread_t rest;
  (void)size;
  (void)program;
  if (rank == 0) {
    pthread_create(&rest, NULL, rest_of_program, NULL);
    pthread_exit(NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// As a library does that has a communicator inside the one that it was given.
static int free_inner(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  return MPI_Comm_free(value);
}
static void frees_inside(int rank, int size, char* program) {
  MPI_Comm outer, inner;
  int key;
  (void)rank, (void)size, (void)program;
  MPI_Comm_dup(MPI_COMM_WORLD, &outer);
  MPI_Comm_dup(outer, &inner);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_inner, &key, NULL);
  MPI_Comm_set_attr(outer, key, &inner);
  MPI_Comm_free(&outer);
  MPI_Comm_free_keyval(&key);
}

// What it calls next is further down the stack than what it left.
__attribute__((noinline)) static void meet_below(void) {
  volatile char room[4096];
  room[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  room[1] = room[0];
}

// Of a file that need not be there.
static jmp_buf no_file;
static void jump(MPI_File* file, int* error, ...) {
  (void)file, (void)error;
  longjmp(no_file, 1);
}
static void jumps(int rank, int size, char* program) {
  MPI_Errhandler handler;
  MPI_File file;
  (void)size, (void)program;
  MPI_File_create_errhandler(jump, &handler);
  MPI_File_set_errhandler(MPI_FILE_NULL, handler);
  for (volatile int round = 0; round < 2; ++round) {
    if (rank == 0 && setjmp(no_file) == 0) {
      MPI_File_open(MPI_COMM_SELF, "/absent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    }
    round == 0 ? (void)MPI_Barrier(MPI_COMM_WORLD) : meet_below();
  }
  MPI_Errhandler_free(&handler);
}

// Out of one of many calls that are the same.
static jmp_buf bad_buffer;
static void jump_back(MPI_Comm* comm, int* error, ...) {
  (void)comm, (void)error;
  longjmp(bad_buffer, 1);
}
static void jumps_again(int rank, int size, char* program) {
  MPI_Comm own;
  MPI_Errhandler handler;
  int out = 0, in = 0;
  (void)rank, (void)size, (void)program;
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  MPI_Comm_create_errhandler(jump_back, &handler);
  MPI_Comm_set_errhandler(own, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);  // which Open MPI asks about buffers
  for (volatile int round = 0; round < 40; ++round) {
    if (setjmp(bad_buffer) != 0) continue;
    MPI_Allreduce(&out, round % 20 == 19 ? MPI_IN_PLACE : &in, 1, MPI_INT, MPI_SUM, own);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  meet_below();
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&own);
}

// A callback that calls MPI has not left the call that called it.
static void ask_and_sum(void* from, void* to, int* count, MPI_Datatype* type) {
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_free(&group);
  (void)type;
  for (int each = 0; each < *count; ++each) ((int*)to)[each] += ((int*)from)[each];
}
static void calls_inside(int rank, int size, char* program) {
  MPI_Op op;
  int sum = 0;
  (void)program;
  MPI_Op_create(ask_and_sum, 1, &op);
  for (int round = 0; round < 40; ++round) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2) abort();
  }
  MPI_Op_free(&op);
}

Case* library_case(const char* name) {
  static const struct {
    const char* name;
    Case* run;
  } kCases[] = {
      {"shared_file", shared_file},
      {"given_types", given_types},
      {"shared_types", shared_types},
      {"statuses", statuses},
      {"main_leaves", main_leaves},
      {"frees_inside", frees_inside},
      {"jumps", jumps},
      {"jumps_again", jumps_again},
      {"calls_inside", calls_inside},
  };
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (strcmp(name, kCases[each].name) == 0) return kCases[each].run;
  }
  return NULL;
}
