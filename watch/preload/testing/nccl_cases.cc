// Small NCCL programs, right and wrong, one a case: `nccl_cases NAME RANKS`. They know nothing of
// Lockstep. They are linked with a stand-in of NCCL, which works on host memory. The first process
// starts a rank a process, and waits for all.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "watch/preload/nccl_calls.h"

using lockstep::watch::preload::NcclUniqueId;

// As in nccl.h; the stand-in has these of version 2.30.
extern "C" {
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22809;
  int blocking = 0;
  int rest[14];
};
static_assert(sizeof(Config) == 80);
int ncclGetUniqueId(NcclUniqueId* id);
int ncclCommInitRankConfig(void** made, int size, NcclUniqueId id, int rank, void* config);
int ncclCommSplit(void* comm, int color, int key, void** made, void* config);
int ncclCommGetAsyncError(void* comm, int* error);
int ncclCommDestroy(void* comm);
int ncclCommAbort(void* comm);
int ncclAllReduce(const void* send, void* recv, std::size_t count, int type, int op, void* comm,
                  void* stream);
int ncclBroadcast(const void* send, void* recv, std::size_t count, int type, int root, void* comm,
                  void* stream);
int ncclSend(const void* data, std::size_t count, int type, int peer, void* comm, void* stream);
int ncclRecv(void* data, std::size_t count, int type, int peer, void* comm, void* stream);
int ncclGroupStart();
int ncclGroupEnd();
}

namespace {

constexpr int kFloat = 7;
constexpr int kSum = 0;

int rank, size;
void* world;
std::atomic<int> stream{0};  // what the stand-in takes for one: operations that are not over
float values[4096];
float sums[4096];

void Require(bool right, const char* what) {
  if (right) return;
  std::printf("rank %d: %s failed\n", rank, what);
  std::exit(9);
}

// A device's stream, and a communicator that is being made, are polled.
void Synchronize() {
  while (stream.load() != 0) usleep(100);
}

void AwaitComm(void* comm) {
  int error = 7;
  while (error == 7) {
    Require(ncclCommGetAsyncError(comm, &error) == 0, "ncclCommGetAsyncError");
    usleep(100);
  }
  Require(error == 0, "a communicator");
}

void AllReduce(void* comm, std::size_t count = 72) {
  Require(ncclAllReduce(values, sums, count, kFloat, kSum, comm, &stream) == 0, "ncclAllReduce");
}

void Broadcast(int root) {
  Require(ncclBroadcast(values, sums, 72, kFloat, root, world, &stream) == 0, "ncclBroadcast");
}

void* Split(int color) {
  Config config;
  std::memset(config.rest, 0, sizeof config.rest);
  void* child = nullptr;
  const int code = ncclCommSplit(world, color, rank, &child, &config);
  Require(code == 0 || code == 7, "ncclCommSplit");
  AwaitComm(world);
  if (child) AwaitComm(child);
  return child;
}

void Train() {
  for (int step = 0; step < 5; ++step) AllReduce(world);
  Synchronize();
}

void Right() {
  Train();
  Broadcast(size - 1);
  Synchronize();
  std::printf("rank %d: %g\n", rank, sums[0]);
}

void Messages() {
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  for (int step = 0; step < 5; ++step) {
    ncclGroupStart();
    ncclSend(values, 16, kFloat, next, world, &stream);
    ncclRecv(sums, 16, kFloat, before, world, &stream);
    ncclGroupEnd();
    Synchronize();
  }
  std::printf("rank %d: %g\n", rank, sums[0]);
}

// Ranks 0 and 2 work more than rank 1, which is alone in its half.
void Halves() {
  void* const half = Split(rank % 2);
  for (int step = 0; step < (rank == 1 ? 2 : 6); ++step) AllReduce(half);
  Synchronize();
  std::printf("rank %d: %g\n", rank, sums[0]);
  Require(ncclCommDestroy(half) == 0, "ncclCommDestroy");
}

void HalvesDiffer() {
  void* const half = Split(rank % 2);
  AllReduce(half, rank == 2 ? 80 : 72);
  Synchronize();
}

void Slow() {
  if (rank == 1) sleep(3);
  Train();
}

void Kinds() {
  Train();
  if (rank == 1) Broadcast(0);
  if (rank != 1) AllReduce(world);
  Synchronize();
}

void Counts() {
  Train();
  AllReduce(world, rank == 1 ? 80 : 72);
  Synchronize();
}

void Ends() {
  Train();
  if (rank == 1) std::exit(0);
  AllReduce(world);
  Synchronize();
}

void Fails() {
  Train();
  if (rank == 1) std::exit(3);
  AllReduce(world);
  Synchronize();
}

void Killed() {
  Train();
  if (rank == 1) raise(SIGKILL);
  AllReduce(world);
  Synchronize();
}

void Stopped() {
  Train();
  if (rank == 1) raise(SIGSTOP);
  AllReduce(world);
  Synchronize();
}

void GivesUp() {
  Train();
  if (rank == 1) {
    ncclCommDestroy(world);
    pause();
  }
  AllReduce(world);
  Synchronize();
}

void NobodySends() {
  if (rank == 0) ncclRecv(sums, 16, kFloat, 1, world, &stream);
  Synchronize();
}

// Rank 1 never comes, and nothing says so.
void Silent() {
  Train();
  if (rank == 1) pause();
  AllReduce(world);
  Synchronize();
}

// Until somebody makes this file.
void AwaitFile() {
  const char* const file = std::getenv("NCCL_CASES_FILE");
  while (file != nullptr && access(file, F_OK) != 0) usleep(1000);
}

void Late() {
  Train();
  if (rank == 1) AwaitFile();
  Train();
}

void LateAndDiffers() {
  Late();
  Kinds();
}

// What a rank of PyTorch does that has no more inputs.
void AbortsAndEnds() {
  Train();
  if (rank == 1) {
    ncclCommAbort(world);
    std::exit(0);
  }
  AllReduce(world);
  Synchronize();
}

// Ranks that agree to stop: what was enqueued is given up.
void Abort() {
  Train();
  if (rank == 0) AllReduce(world);
  Require(ncclCommAbort(world) == 0, "ncclCommAbort");
  std::exit(0);
}

constexpr struct {
  const char* name;
  void (*run)();
} kCases[] = {
    {"right", Right},
    {"messages", Messages},
    {"halves", Halves},
    {"slow", Slow},
    {"abort", Abort},
    {"halves_differ", HalvesDiffer},
    {"kinds", Kinds},
    {"counts", Counts},
    {"ends", Ends},
    {"fails", Fails},
    {"killed", Killed},
    {"stopped", Stopped},
    {"silent", Silent},
    {"gives_up", GivesUp},
    {"nobody_sends", NobodySends},
    {"late", Late},
    {"late_differs", LateAndDiffers},
    {"aborts_and_ends", AbortsAndEnds},
};

int RunRank(const NcclUniqueId& id, const char* name) {
  Config config;
  std::memset(config.rest, 0, sizeof config.rest);
  for (float& value : values) value = 1;
  const int code = ncclCommInitRankConfig(&world, size, id, rank, &config);
  Require(code == 0 || code == 7, "ncclCommInitRankConfig");
  AwaitComm(world);
  for (const auto& each : kCases) {
    if (std::strcmp(each.name, name) == 0) each.run();
  }
  ncclCommDestroy(world);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  size = std::atoi(words[2]);
  NcclUniqueId id;
  if (ncclGetUniqueId(&id) != 0) return 9;
  std::vector<pid_t> ranks;
  for (rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      return RunRank(id, words[1]);
    }
    ranks.push_back(child);
  }
  int worst = 0;
  for (const pid_t each : ranks) {
    int status = 0;
    waitpid(each, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    worst = code > worst ? code : worst;
  }
  return worst;
}
