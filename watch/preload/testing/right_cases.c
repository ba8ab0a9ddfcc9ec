// Right programs that use what few do: handles of what was freed come again, halves of messages are
// given up, processes are spawned, callbacks run in MPI_Finalize, threads call at a time.
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "watch/preload/testing/more_cases.h"

enum { kRounds = 5 };

static void pass(int rank, int size, int tag, int count, MPI_Datatype sent, MPI_Datatype received) {
  char out[64] = {0}, in[64];
  MPI_Sendrecv(out, 1, sent, (rank + 1) % size, tag, in, count, received, (rank + size - 1) % size,
               tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Types are made where others were freed, some by calls that are not followed.
static void new_types(int rank, int size, char* program) {
  const MPI_Aint places[2] = {0, 16};
  const int all[1] = {2 * size}, blocks[1] = {MPI_DISTRIBUTE_BLOCK};
  const int defaults[1] = {MPI_DISTRIBUTE_DFLT_DARG}, ranks[1] = {size};
  (void)program;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Datatype type;
    MPI_Type_contiguous(4, MPI_INT, &type);
    MPI_Type_commit(&type);
    pass(rank, size, 1, 4, type, MPI_INT);
    MPI_Type_free(&type);
    MPI_Type_create_darray(size, rank, 1, all, blocks, defaults, ranks, MPI_ORDER_C, MPI_INT,
                           &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
    MPI_Type_create_hindexed_block(2, 2, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    pass(rank, size, 2, 4, type, MPI_INT);
    MPI_Type_free(&type);
    pass(rank, size, 3, 2, MPI_2INT, MPI_INT);
  }
}

// So are communicators.
static void new_communicators(int rank, int size, char* program) {
  MPI_Comm first, second, copy;
  MPI_Request request;
  int sum = 0;
  (void)program;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Barrier(first);
    MPI_Comm_free(&first);
    MPI_Comm_idup(MPI_COMM_WORLD, &second, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, second);
    MPI_Comm_dup(second, &copy);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &sum, 1, MPI_INT,
                 (rank + size - 1) % size, 0, copy, MPI_STATUS_IGNORE);
    MPI_Comm_free(&second);
    MPI_Comm_free(&copy);
  }
}

// Who gives nothing may name any type.
static void nothing(int rank, int size, char* program) {
  int counts[16] = {0}, places[16] = {0}, all[16] = {0}, mine[16] = {0};
  double other[16] = {0};
  (void)program;
  for (int each = 0; each < size; ++each) {
    counts[each] = each == 1 ? 0 : 1;
    places[each] = each;
  }
  const MPI_Datatype type = rank == 1 ? MPI_DOUBLE : MPI_INT;
  void* const data = rank == 1 ? (void*)other : mine;
  MPI_Gatherv(data, counts[rank], type, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatterv(all, counts, places, MPI_INT, data, counts[rank], type, 0, MPI_COMM_WORLD);
  // Rank 1 keeps to itself.
  for (int each = 0; each < size; ++each) counts[each] = (each == 1) == (rank == 1);
  MPI_Alltoallv(data, counts, places, type, rank == 1 ? (void*)(other + 8) : mine + 8, counts,
                places, type, MPI_COMM_WORLD);
}

// What is cancelled is received by nobody, or by who asks for it all the same. Then the tag is that
// of another datatype.
static void given_up(int rank, int size, char* program) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  (void)program;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Request request;
    MPI_Status status;
    int value = round, cancelled = 0, theirs = 0;
    MPI_Irecv(&value, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    if (round % 2 == 0) MPI_Request_free(&request);
    if (round % 2 == 1) MPI_Wait(&request, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    pass(rank, size, 5, 1, MPI_DOUBLE, MPI_DOUBLE);
    MPI_Isend(&value, 1, MPI_INT, right, 6, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Sendrecv(&cancelled, 1, MPI_INT, right, 7, &theirs, 1, MPI_INT, left, 7, MPI_COMM_WORLD,
                 &status);
    if (!theirs) MPI_Recv(&value, 1, MPI_INT, left, 6, MPI_COMM_WORLD, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    pass(rank, size, 6, 1, MPI_DOUBLE, MPI_DOUBLE);
  }
}

// A library's communicator, which it uses until MPI_Finalize.
static MPI_Comm own;
static int own_rank;

static int at_the_end(MPI_Comm comm, int key, void* value, void* extra) {
  int sum = 0;
  (void)comm, (void)key, (void)value, (void)extra;
  MPI_Allreduce(&own_rank, &sum, 1, MPI_INT, MPI_SUM, own);
  if (own_rank == 0) MPI_Send(&sum, 1, MPI_INT, 1, 3, own);
  if (own_rank == 1) MPI_Recv(&sum, 1, MPI_INT, 0, 3, own, MPI_STATUS_IGNORE);
  return MPI_Comm_free(&own);
}

static void callbacks(int rank, int size, char* program) {
  int key = 0;
  (void)size, (void)program;
  own_rank = rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

// Two processes more, in one communicator with the others.
static void spawned(int rank, int size, char* program) {
  char* words[] = {"spawned", NULL};
  MPI_Comm parents, inter, all;
  int me = 0, everybody = 0, got = 0, sum = 0;
  (void)rank, (void)size;
  MPI_Comm_get_parent(&parents);
  inter = parents;
  if (parents == MPI_COMM_NULL) {
    MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
  }
  MPI_Intercomm_merge(inter, parents != MPI_COMM_NULL, &all);
  MPI_Comm_rank(all, &me);
  MPI_Comm_size(all, &everybody);
  for (int round = 0; round < kRounds; ++round) {
    MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % everybody, 5, &got, 1, MPI_INT,
                 (me + everybody - 1) % everybody, 5, all, MPI_STATUS_IGNORE);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all);
  }
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

enum { kThreads = 4, kTurns = 300 };

struct Thread {
  int rank, size, number;
  MPI_Comm comm;
  pthread_t id;
};

// What the library has given back is soon another thread's.
static void* pass_requests(void* thread) {
  const struct Thread* const me = thread;
  const int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
  for (int turn = 0; turn < kTurns; ++turn) {
    MPI_Request requests[2];
    int got = 0;
    MPI_Irecv(&got, 1, MPI_INT, left, me->number, me->comm, requests);
    MPI_Isend(&turn, 1, MPI_INT, right, me->number, me->comm, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&turn, &got, 1, MPI_INT, MPI_SUM, me->comm);
  }
  return NULL;
}

static void* make_types(void* thread) {
  const struct Thread* const me = thread;
  for (int turn = 0; turn < 10 * kTurns; ++turn) {
    MPI_Datatype type;
    int out = turn, in = 0;
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(&out, 1, type, 0, me->number, &in, 1, type, 0, me->number, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
  }
  return NULL;
}

// Loops of one to five collectives, whose calls are counted once they came again. Ranks write down
// theirs at their own pace.
static void loops(int rank, int size, char* program) {
  (void)program;
  int value = rank, sum = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    const int length = 1 + turn / 1000;
    for (int call = 0; call < length; ++call) {
      if (call % 2 == 0) MPI_Bcast(&value, 1, MPI_INT, call % size, MPI_COMM_WORLD);
      if (call % 2 != 0) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (turn % 700 == 0 && rank == 0) MPI_Barrier(MPI_COMM_SELF);
  }
}

// One makes the collectives of a communicator, the others send and receive on it.
static void* meet_or_pass(void* thread) {
  const struct Thread* const me = thread;
  const int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
  for (int turn = 0; turn < kTurns; ++turn) {
    int got = 0;
    if (me->number == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Sendrecv(&turn, 1, MPI_INT, right, me->number, &got, 1, MPI_INT, left, me->number,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  return NULL;
}

static void run_threads(int rank, int size, void* (*work)(void*)) {
  struct Thread threads[kThreads];
  for (int each = 0; each < kThreads; ++each) {
    threads[each] = (struct Thread){.rank = rank, .size = size, .number = each};
    MPI_Comm_dup(MPI_COMM_WORLD, &threads[each].comm);
  }
  for (int each = 0; each < kThreads; ++each) {
    pthread_create(&threads[each].id, NULL, work, threads + each);
  }
  for (int each = 0; each < kThreads; ++each) {
    pthread_join(threads[each].id, NULL);
    MPI_Comm_free(&threads[each].comm);
  }
}

static void thread_requests(int rank, int size, char* program) {
  (void)program;
  run_threads(rank, size, pass_requests);
}
static void thread_types(int rank, int size, char* program) {
  (void)program;
  run_threads(rank, size, make_types);
}
static void thread_orders(int rank, int size, char* program) {
  (void)program;
  run_threads(rank, size, meet_or_pass);
}

// A library frees nothing where a callback of the program refuses, and nothing of its own.
static int refuses(MPI_Comm comm, int key, void* value, void* extra) {
  int* const times = value;
  (void)comm, (void)key, (void)extra;
  return (*times)-- > 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static void refused(int rank, int size, char* program) {
  (void)size, (void)program;
  int key = 0, times = 1, sum = 0;
  MPI_Comm copy;
  MPI_Op op = MPI_SUM;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(copy, key, &times);
  MPI_Comm kept = copy;
  if (MPI_Comm_free(&copy) != MPI_SUCCESS) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, kept);
    MPI_Comm_free(&kept);
  }
  MPI_Comm_free_keyval(&key);
  MPI_Op_free(&op);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Two sides become one, again and again.
static void unites(int rank, int size, char* program) {
  (void)program;
  for (int round = 0; round < kRounds; ++round) {
    const int border = 1 + round % (size - 1);
    MPI_Comm side, both, one, copy;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, rank < border, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank < border ? border : 0, round, &both);
    MPI_Barrier(both);
    // Rank 0 is the root of all others' side. Of the other arguments MPI ignores half.
    const int root = rank >= border ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    int word = rank, words[64];
    if (rank < border) {
      MPI_Gather(NULL, 0, MPI_DATATYPE_NULL, words, 1, MPI_INT, root, both);
      MPI_Scatter(words, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, both);
    } else {
      MPI_Gather(&word, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, both);
      MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &word, 1, MPI_INT, root, both);
    }
    MPI_Bcast(&word, root == MPI_PROC_NULL ? 0 : 1, MPI_INT, root, both);
    MPI_Intercomm_merge(both, rank < border, &one);
    MPI_Comm_idup(one, &copy, &request);
    MPI_Barrier(one);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    pass(rank, size, round, 1, MPI_INT, MPI_INT);
    MPI_Comm_disconnect(&copy);
    MPI_Comm_disconnect(&one);
    MPI_Comm_free(&both);
    MPI_Comm_free(&side);
  }
}

// Each rank puts into the window of the next one, which takes its time.
static void epochs(int rank, int size, char* program) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int memory = 0, over = 0;
  MPI_Group all, before, behind;
  MPI_Win window;
  (void)program;
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &left, &before);
  MPI_Group_incl(all, 1, &right, &behind);
  for (int round = 0; round < kRounds; ++round) {
    if (rank == round) usleep(400000);
    MPI_Win_post(before, 0, window);
    MPI_Win_start(behind, 0, window);
    MPI_Put(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
    if (round % 2 == 0) MPI_Win_wait(window);
    for (over = round % 2 == 0; !over;) MPI_Win_test(window, &over);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&before);
  MPI_Group_free(&behind);
  MPI_Win_free(&window);
}

// All others wait for two that want the same lock, of which one keeps it for a while.
static void locks(int rank, int size, char* program) {
  int* memory;
  int value = 0;
  MPI_Win window;
  (void)program;
  MPI_Win_allocate(sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int round = 0; rank < 2 && round < kRounds; ++round) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, window);
    MPI_Get(&value, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
    MPI_Win_flush(size - 1, window);
    if (rank == round) usleep(600000);
    MPI_Put(&value, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
    MPI_Win_unlock(size - 1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Win_flush_all(window);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

// One thread waits for a message that the other one sends later; all other ranks wait for both.
static void* receive_own(void* rank) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, *(int*)rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}
static void thread_helps(int rank, int size, char* program) {
  pthread_t other;
  (void)size, (void)program;
  if (rank == 0) {
    pthread_create(&other, NULL, receive_own, &rank);
    usleep(600000);
    MPI_Send(&rank, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    pthread_join(other, NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

Case* right_case(const char* name) {
  static const struct {
    const char* name;
    Case* run;
  } kCases[] = {
      {"new_types", new_types},
      {"new_communicators", new_communicators},
      {"nothing", nothing},
      {"unites", unites},
      {"refused", refused},
      {"given_up", given_up},
      {"callbacks", callbacks},
      {"spawned", spawned},
      {"thread_requests", thread_requests},
      {"thread_types", thread_types},
      {"thread_orders", thread_orders},
      {"thread_helps", thread_helps},
      {"epochs", epochs},
      {"locks", locks},
      {"loops", loops},
  };
  for (size_t each = 0; each < sizeof kCases / sizeof *kCases; ++each) {
    if (strcmp(name, kCases[each].name) == 0) return kCases[each].run;
  }
  return NULL;
}
