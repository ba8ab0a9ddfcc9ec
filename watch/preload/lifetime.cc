// Init, Finalize and Abort. Watching begins in MPI_Init and not before: a process that never calls
// it costs nothing and leaves no file. MPI_Finalize first runs callbacks of the program, which may
// call what they like; only then is it told that the program calls nothing more.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "watch/events/segment.h"
#include "watch/preload/library_threads.h"
#include "watch/preload/mpi_names.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
namespace {

// The length, and what the file holds.
using Bytes = unsigned char[events::kMostEndpointBytes + 1];

void ReadEndpoint(const char* path, Bytes& bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  const ssize_t length = read(file, bytes + 1, events::kMostEndpointBytes);
  if (length > 0) bytes[0] = static_cast<unsigned char>(length);
  close(file);
}

// Whole, or not at all.
void WriteEndpoint(const char* path, const Bytes& bytes) {
  char fresh[600];
  std::snprintf(fresh, sizeof fresh, "%s.new", path);
  const int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const bool whole = write(file, bytes + 1, bytes[0]) == bytes[0];
  close(file);
  if (whole) rename(fresh, path);
}

// How watchers of several hosts find each other: one broadcast of the program's own MPI, before the
// program can call anything. Rank 0's watcher left a file in its folder; the same file appears in
// the folders of the others. It holds a secret, so its mode is 0600. On all ranks, or on none.
void CarryEndpoint() {
  const char* const folder = std::getenv(events::kFolderVariable);
  if (!folder || !std::getenv(events::kMeetVariable)) return;
  const auto broadcast = Real<int(void*, int, Handle, int, Handle)>("PMPI_Bcast");
  const auto rank_of = Real<int(Handle, int*)>("PMPI_Comm_rank");
  if (!broadcast || !rank_of) return;
  char path[560];
  std::snprintf(path, sizeof path, "%s/%s", folder, events::kEndpointFile);
  Bytes bytes = {};
  int rank = 0;
  rank_of(abi.comm_world, &rank);
  if (rank == 0) ReadEndpoint(path, bytes);
  ++internal::depth;
  const int error = broadcast(bytes, sizeof bytes, abi.byte, 0, abi.comm_world);
  --internal::depth;
  if (error == kMpiSuccess && rank != 0 && bytes[0] != 0) WriteEndpoint(path, bytes);
}

Watched* finalizing = nullptr;  // MPI_Finalize, while callbacks may run

int CallbacksAreOver(Handle, int, void*, void*) {
  if (finalizing) std::exchange(finalizing, nullptr)->Enter();
  return kMpiSuccess;
}

int IsNotCopied(Handle, int, void*, void*, void*, int* copied) {
  *copied = 0;
  return kMpiSuccess;
}

// What a program attached to MPI_COMM_SELF is called in MPI_Finalize, the newest first. This is the
// oldest.
void AwaitCallbacks() {
  const auto create_key =
      Real<int(decltype(&IsNotCopied), decltype(&CallbacksAreOver), int*, void*)>(
          "PMPI_Comm_create_keyval");
  const auto attach = Real<int(Handle, int, void*)>("PMPI_Comm_set_attr");
  int key = 0;
  if (!create_key || !attach) return;
  const int error = create_key(IsNotCopied, CallbacksAreOver, &key, nullptr);
  if (error == kMpiSuccess) attach(abi.comm_self, key, nullptr);
}

void BeginProgram(events::Call call, std::uint64_t site) {
  if (!LearnAbi() || !OpenSegment()) return;
  events::Event event;
  event.phase = events::Phase::kEnter;
  event.call = call;
  event.site = site;
  Write(event);
}

// `alone`: MPI_Init was entered by the only thread.
void Began(events::Call call, int error, bool alone) {
  if (error == kMpiSuccess && abi.handle_bytes != 0) CarryEndpoint();
  if (!internal::header) return;
  if (error == kMpiSuccess) {
    int rank = 0;
    int size = 0;
    int threads = 0;
    Real<int(Handle, int*)>("PMPI_Comm_rank")(abi.comm_world, &rank);
    Real<int(Handle, int*)>("PMPI_Comm_size")(abi.comm_world, &size);
    Real<int(int*)>("PMPI_Query_thread")(&threads);
    if (alone) NoteLibraryThreads();
    SetRank(rank, size, threads == kMpiThreadMultiple);
    several_threads = any_thread_calls || threads == kMpiThreadMultiple;
    LearnPredefined();
    AwaitCallbacks();
  }
  events::Event event;
  event.phase = events::Phase::kLeave;
  event.call = call;
  event.peer = error;
  Write(event);
}

}  // namespace

#define LOCKSTEP_INIT(NAME, PARAMS, ARGUMENTS)                                  \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {                     \
    const auto real = Real<int PARAMS>("PMPI_" #NAME);                          \
    if (!real) return kMpiErrOther;                                             \
    BeginProgram(events::Call::k##NAME,                                         \
                 reinterpret_cast<std::uint64_t>(__builtin_return_address(0))); \
    const bool alone = IsOnlyThread();                                          \
    ++internal::depth;                                                          \
    const int result = real ARGUMENTS;                                          \
    --internal::depth;                                                          \
    Began(events::Call::k##NAME, result, alone);                                \
    return result;                                                              \
  }                                                                             \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));

LOCKSTEP_INIT(Init, (int* count, char*** words), (count, words))
LOCKSTEP_INIT(Init_thread, (int* count, char*** words, int wanted, int* provided),
              (count, words, wanted, provided))

extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_Finalize() {
  const auto real = Real<int()>("PMPI_Finalize");
  if (!real) return kMpiErrOther;
  if (!WatchingMpi(__builtin_return_address(0))) return real();
  Watched call(events::Call::kFinalize, __builtin_return_address(0));
  finalizing = &call;
  --internal::depth;
  const int result = real();
  ++internal::depth;
  CallbacksAreOver({}, 0, nullptr, nullptr);  // where the library did not call it
  call.Leave(result);
  if (internal::header) internal::header->finalized.store(1);
  return result;
}
extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_Finalize() __attribute__((alias("MPI_Finalize")));

LOCKSTEP_WATCHED(Abort, (Handle comm, int code), (comm, code), call.Collective(comm, code), )

}  // namespace lockstep::watch::preload
