// Init, Finalize and Abort. Watching begins in MPI_Init and not before: a process that never calls
// it costs nothing and leaves no file. Callbacks that run inside MPI_Finalize are the program's
// own.
#include "watch/preload/meeting.h"
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
namespace {

// Where MPI was loaded in a scope of its own (Python's), its handles have no names here.
bool HandlesAreKnown() {
  const std::uint64_t world = (std::uint64_t)(std::uintptr_t)MPI_COMM_WORLD;  // NOLINT
  return world != 0;
}

void Begin(events::Call call, std::uint64_t site) {
  if (!HandlesAreKnown() || !OpenSegment()) return;
  events::Event event;
  event.phase = events::Phase::kEnter;
  event.call = call;
  event.site = site;
  Write(event);
}

void Began(events::Call call, int error) {
  if (error == MPI_SUCCESS && HandlesAreKnown()) CarryEndpoint();
  if (!internal::header) return;
  if (error == MPI_SUCCESS) {
    int rank = 0;
    int size = 0;
    int threads = 0;
    Real<int(MPI_Comm, int*)>("PMPI_Comm_rank")(MPI_COMM_WORLD, &rank);
    Real<int(MPI_Comm, int*)>("PMPI_Comm_size")(MPI_COMM_WORLD, &size);
    Real<int(int*)>("PMPI_Query_thread")(&threads);
    SetRank(rank, size, threads == MPI_THREAD_MULTIPLE);
    LearnPredefined();
  }
  events::Event event;
  event.phase = events::Phase::kLeave;
  event.call = call;
  event.peer = error;
  Write(event);
}

}  // namespace
}  // namespace lockstep::watch::preload

#define LOCKSTEP_INIT(NAME, PARAMS, ARGUMENTS)                                    \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {                       \
    using namespace lockstep::watch; /* NOLINT */                                 \
    const auto real = preload::Real<int PARAMS>("PMPI_" #NAME);                   \
    if (!real) return MPI_ERR_OTHER;                                              \
    preload::Begin(events::Call::k##NAME,                                         \
                   reinterpret_cast<std::uint64_t>(__builtin_return_address(0))); \
    ++preload::internal::depth;                                                   \
    const int result = real ARGUMENTS;                                            \
    --preload::internal::depth;                                                   \
    preload::Began(events::Call::k##NAME, result);                                \
    return result;                                                                \
  }                                                                               \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));

LOCKSTEP_INIT(Init, (int* count, char*** words), (count, words))
LOCKSTEP_INIT(Init_thread, (int* count, char*** words, int wanted, int* provided),
              (count, words, wanted, provided))

extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_Finalize() {
  using namespace lockstep::watch;  // NOLINT
  const auto real = preload::Real<int()>("PMPI_Finalize");
  if (!real) return MPI_ERR_OTHER;
  if (!preload::Watching()) return real();
  preload::Watched call(events::Call::kFinalize, __builtin_return_address(0));
  call.Enter();
  --preload::internal::depth;
  const int result = real();
  ++preload::internal::depth;
  call.Leave(result);
  return result;
}
extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_Finalize() __attribute__((alias("MPI_Finalize")));

LOCKSTEP_WATCHED(Abort, (MPI_Comm comm, int code), (comm, code), call.Collective(comm, code), )
