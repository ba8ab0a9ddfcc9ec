// Init, Finalize and Abort. Watching begins in MPI_Init and not before: a process that never calls
// it costs nothing and leaves no file. Callbacks that run inside MPI_Finalize are the program's
// own.
#include "watch/preload/meeting.h"
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
namespace {

void Begin(events::Call call, std::uint64_t site) {
  if (!LearnAbi() || !OpenSegment()) return;
  events::Event event;
  event.phase = events::Phase::kEnter;
  event.call = call;
  event.site = site;
  Write(event);
}

void Began(events::Call call, int error) {
  if (error == kMpiSuccess && abi.handle_bytes != 0) CarryEndpoint();
  if (!internal::header) return;
  if (error == kMpiSuccess) {
    int rank = 0;
    int size = 0;
    int threads = 0;
    Real<int(Handle, int*)>("PMPI_Comm_rank")(abi.comm_world, &rank);
    Real<int(Handle, int*)>("PMPI_Comm_size")(abi.comm_world, &size);
    Real<int(int*)>("PMPI_Query_thread")(&threads);
    SetRank(rank, size, threads == kMpiThreadMultiple);
    LearnPredefined();
  }
  events::Event event;
  event.phase = events::Phase::kLeave;
  event.call = call;
  event.peer = error;
  Write(event);
}

}  // namespace

#define LOCKSTEP_INIT(NAME, PARAMS, ARGUMENTS)                                                  \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {                                     \
    const auto real = Real<int PARAMS>("PMPI_" #NAME);                                          \
    if (!real) return kMpiErrOther;                                                             \
    Begin(events::Call::k##NAME, reinterpret_cast<std::uint64_t>(__builtin_return_address(0))); \
    ++internal::depth;                                                                          \
    const int result = real ARGUMENTS;                                                          \
    --internal::depth;                                                                          \
    Began(events::Call::k##NAME, result);                                                       \
    return result;                                                                              \
  }                                                                                             \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));

LOCKSTEP_INIT(Init, (int* count, char*** words), (count, words))
LOCKSTEP_INIT(Init_thread, (int* count, char*** words, int wanted, int* provided),
              (count, words, wanted, provided))

extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_Finalize() {
  const auto real = Real<int()>("PMPI_Finalize");
  if (!real) return kMpiErrOther;
  if (!WatchingMpi()) return real();
  Watched call(events::Call::kFinalize, __builtin_return_address(0));
  call.Enter();
  --internal::depth;
  const int result = real();
  ++internal::depth;
  call.Leave(result);
  return result;
}
extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_Finalize() __attribute__((alias("MPI_Finalize")));

LOCKSTEP_WATCHED(Abort, (Handle comm, int code), (comm, code), call.Collective(comm, code), )

}  // namespace lockstep::watch::preload
