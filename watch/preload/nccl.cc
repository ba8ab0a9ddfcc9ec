// NCCL's calls, written down when they are made: a device does the work later, and nothing here
// asks it. NCCL's own calls of its functions are kept out by the depth.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "watch/events/event.h"
#include "watch/preload/nccl_calls.h"
#include "watch/preload/nccl_comms.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"
#include "watch/preload/world.h"

namespace lockstep::watch::preload {
namespace {

using events::Call;
using events::Event;
using events::Phase;

constexpr std::int32_t kMoves = events::kNoOp;  // the operator of a call that only moves bytes
constexpr std::uint32_t kBytes = 1 << 8 | 1;
std::atomic<std::int32_t> nccl_calls_of[static_cast<std::size_t>(Call::kCount)];
bool called_by_torch = false;  // whose C++ lines tell its users nothing
constinit thread_local int groups_open __attribute__((tls_model("initial-exec"))) = 0;

Event Enters(Call call, void* caller) {
  Event event;
  event.phase = Phase::kEnter;
  event.call = call;
  event.site = called_by_torch ? 0 : reinterpret_cast<std::uint64_t>(caller);
  event.peer = events::kNoRoot;
  event.tag = events::kNoOp;
  if (call != Call::kNcclGroupEnd) {
    event.count2 = ++nccl_calls_of[static_cast<std::size_t>(call)];
  }
  return event;
}

void Data(std::size_t count, int type, std::int32_t op, Event* event) {
  const int bytes = NcclBytesOf(type);
  if (bytes == 0) {
    event->count = events::kUnknownCount;
  } else if (op == kMoves) {
    event->type = kBytes;
    event->count = static_cast<std::int64_t>(count) * bytes;
  } else {
    event->type = static_cast<std::uint32_t>((type + 1) << 8 | bytes);
    event->count = static_cast<std::int64_t>(count);
  }
  event->tag = op >= kNcclFirstOwnOp ? events::kUserOp : op;
}

// A call of the program, from its entry to its return.
class Open {
 public:
  explicit Open(const Event& event) : call_(event.call) {
    Write(event);
    ++internal::depth;
  }
  int Left(int result) const {
    --internal::depth;
    Event event;
    event.phase = Phase::kLeave;
    event.call = call_;
    event.peer = result == kNcclInProgress ? kNcclSuccess : result;
    Write(event);
    return result;
  }

 private:
  Call call_;
};

Event EntersCollective(Call call, void* caller, std::size_t count, int type, int root,
                       std::int32_t op, void* comm) {
  Event event = Enters(call, caller);
  NumberCall(comm, false, &event);
  event.peer = root;
  Data(count, type, op, &event);
  return event;
}

Event Message(Call call, void* caller, std::size_t count, int type, int peer, void* comm) {
  Event event = Enters(call, caller);
  event.comm = NameOfNccl(comm);
  event.peer = peer;
  Data(count, type, kMoves, &event);
  return event;
}

Event OnComm(Call call, void* caller, void* comm) {
  Event event = Enters(call, caller);
  event.comm = NameOfNccl(comm);
  return event;
}

bool BeginWith(std::uint64_t name, int rank, int size, void* caller) {
  AnyThreadCalls();
  if (internal::header) return internal::depth == 0;
  if (internal::depth > 0) return false;
  Dl_info facts;
  if (dladdr(caller, &facts) != 0 && facts.dli_fname) {
    called_by_torch = std::strstr(facts.dli_fname, "libtorch") != nullptr;
  }
  LaunchedAs(&rank, &size);
  char job[32];
  std::snprintf(job, sizeof job, "nccl-%016llx", static_cast<unsigned long long>(name));
  return BeginWatching(rank, size, job);
}

template <typename Forward>
int Init(void** made, std::uint64_t name, int rank, int size, void* caller, Forward forward) {
  if (!BeginWith(name, rank, size, caller)) return forward();
  JoinedComm(name, rank, size);
  Event event = Enters(Call::kNcclInit, caller);
  event.comm = name;
  const Open open(event);
  const int result = open.Left(forward());
  if (result != kNcclSuccess && result != kNcclInProgress) return result;
  if (groups_open > 0) {
    ExpectComm(made, nullptr, name);
  } else if (*made) {
    RememberComm(*made, name);
  }
  return result;
}

template <typename Forward>
int Child(const Event& event, void* comm, std::uint64_t name, void** made, Forward forward) {
  const Open open(event);
  const int result = open.Left(forward());
  if (result != kNcclSuccess && result != kNcclInProgress) return result;
  if (name == events::kUnknownComm) return result;
  ExpectComm(made, comm, name);
  if (result == kNcclSuccess && groups_open == 0) CollectComms(comm);
  return result;
}

}  // namespace

#define LOCKSTEP_NCCL_VISIBLE extern "C" __attribute__((visibility("default")))

// `caller` is the program's return address, `real` the library's function.
#define LOCKSTEP_NCCL_BEGIN(NAME)                                                      \
  void* const caller = __builtin_return_address(0);                                    \
  const auto real =                                                                    \
      FoundOnce([&] { return RealNccl<decltype(nccl##NAME)>("nccl" #NAME, caller); }); \
  if (!real) return kNcclInternalError

#define LOCKSTEP_NCCL_COLLECTIVE(NAME, PARAMS, ARGUMENTS, CALL, ROOT, OP)                  \
  LOCKSTEP_NCCL_VISIBLE int nccl##NAME PARAMS {                                            \
    LOCKSTEP_NCCL_BEGIN(NAME);                                                             \
    if (!Watching()) return real ARGUMENTS;                                                \
    const Open open(EntersCollective(Call::k##CALL, caller, count, type, ROOT, OP, comm)); \
    return open.Left(real ARGUMENTS);                                                      \
  }
LOCKSTEP_NCCL_COLLECTIVES(LOCKSTEP_NCCL_COLLECTIVE)

#define LOCKSTEP_NCCL_MESSAGE(NAME, PARAMS, ARGUMENTS, CALL)                  \
  LOCKSTEP_NCCL_VISIBLE int nccl##NAME PARAMS {                               \
    LOCKSTEP_NCCL_BEGIN(NAME);                                                \
    if (!Watching()) return real ARGUMENTS;                                   \
    const Open open(Message(Call::k##CALL, caller, count, type, peer, comm)); \
    return open.Left(real ARGUMENTS);                                         \
  }
LOCKSTEP_NCCL_MESSAGES(LOCKSTEP_NCCL_MESSAGE)

// What the test compares is what is written below.
#define LOCKSTEP_NCCL_DECLARE(NAME, PARAMS) LOCKSTEP_NCCL_VISIBLE int nccl##NAME PARAMS;
LOCKSTEP_NCCL_OTHERS(LOCKSTEP_NCCL_DECLARE)

LOCKSTEP_NCCL_VISIBLE int ncclCommInitRank(void** made, int size, NcclUniqueId id, int rank) {
  LOCKSTEP_NCCL_BEGIN(CommInitRank);
  return Init(made, NcclName(0, &id, sizeof id), rank, size, caller,
              [&] { return real(made, size, id, rank); });
}

LOCKSTEP_NCCL_VISIBLE int ncclCommInitRankConfig(void** made, int size, NcclUniqueId id, int rank,
                                                 void* config) {
  LOCKSTEP_NCCL_BEGIN(CommInitRankConfig);
  return Init(made, NcclName(0, &id, sizeof id), rank, size, caller,
              [&] { return real(made, size, id, rank, config); });
}

LOCKSTEP_NCCL_VISIBLE int ncclCommInitRankScalable(void** made, int size, int rank, int id_count,
                                                   NcclUniqueId* ids, void* config) {
  LOCKSTEP_NCCL_BEGIN(CommInitRankScalable);
  const std::size_t bytes = id_count < 0 ? 0 : static_cast<std::size_t>(id_count) * sizeof *ids;
  return Init(made, NcclName(0, ids, bytes), rank, size, caller,
              [&] { return real(made, size, rank, id_count, ids, config); });
}

// One process has all its ranks: nothing is followed that another could miss.
LOCKSTEP_NCCL_VISIBLE int ncclCommInitAll(void** made, int count, const int* devices) {
  LOCKSTEP_NCCL_BEGIN(CommInitAll);
  if (!Watching()) return real(made, count, devices);
  const Open open(Enters(Call::kNcclInitAll, caller));
  return open.Left(real(made, count, devices));
}

LOCKSTEP_NCCL_VISIBLE int ncclCommSplit(void* comm, int color, int key, void** made, void* config) {
  LOCKSTEP_NCCL_BEGIN(CommSplit);
  if (!Watching()) return real(comm, color, key, made, config);
  Event event = Enters(Call::kNcclSplit, caller);
  NumberCall(comm, true, &event);
  const std::uint32_t facts[] = {event.request, static_cast<std::uint32_t>(color)};
  const bool nobody = color < 0 || event.comm == events::kUnknownComm;
  const std::uint64_t name =
      nobody ? events::kUnknownComm : NcclName(event.comm, facts, sizeof facts);
  return Child(event, comm, name, made, [&] { return real(comm, color, key, made, config); });
}

LOCKSTEP_NCCL_VISIBLE int ncclCommShrink(void* comm, int* excluded, int excluded_count, void** made,
                                         void* config, int flags) {
  LOCKSTEP_NCCL_BEGIN(CommShrink);
  if (!Watching()) return real(comm, excluded, excluded_count, made, config, flags);
  const Event event = OnComm(Call::kNcclShrink, caller, comm);
  if (flags == kNcclShrinkAbort) Open(OnComm(Call::kNcclAbort, caller, comm)).Left(kNcclSuccess);
  const bool known = event.comm != events::kUnknownComm && excluded_count >= 0;
  const std::size_t bytes = known ? static_cast<std::size_t>(excluded_count) * sizeof(int) : 0;
  const std::uint64_t name = known ? NcclName(~event.comm, excluded, bytes) : events::kUnknownComm;
  return Child(event, comm, name, made,
               [&] { return real(comm, excluded, excluded_count, made, config, flags); });
}

LOCKSTEP_NCCL_VISIBLE int ncclCommFinalize(void* comm) {
  LOCKSTEP_NCCL_BEGIN(CommFinalize);
  if (!Watching()) return real(comm);
  const Open open(OnComm(Call::kNcclFinalize, caller, comm));
  return open.Left(real(comm));
}

// Its memory may be another communicator's as soon as it returns.
LOCKSTEP_NCCL_VISIBLE int ncclCommDestroy(void* comm) {
  LOCKSTEP_NCCL_BEGIN(CommDestroy);
  if (!Watching()) return real(comm);
  const Open open(OnComm(Call::kNcclDestroy, caller, comm));
  ForgetComm(comm);
  return open.Left(real(comm));
}

LOCKSTEP_NCCL_VISIBLE int ncclCommAbort(void* comm) {
  LOCKSTEP_NCCL_BEGIN(CommAbort);
  if (!Watching()) return real(comm);
  const Open open(OnComm(Call::kNcclAbort, caller, comm));
  ForgetComm(comm);
  return open.Left(real(comm));
}

LOCKSTEP_NCCL_VISIBLE int ncclCommRevoke(void* comm, int flags) {
  LOCKSTEP_NCCL_BEGIN(CommRevoke);
  if (!Watching()) return real(comm, flags);
  const Open open(OnComm(Call::kNcclRevoke, caller, comm));
  return open.Left(real(comm, flags));
}

LOCKSTEP_NCCL_VISIBLE int ncclCommGetAsyncError(void* comm, int* error) {
  LOCKSTEP_NCCL_BEGIN(CommGetAsyncError);
  const int result = real(comm, error);
  if (Watching() && result == kNcclSuccess && *error == kNcclSuccess) CollectComms(comm);
  return result;
}

LOCKSTEP_NCCL_VISIBLE int ncclGroupStart() {
  LOCKSTEP_NCCL_BEGIN(GroupStart);
  const int result = real();
  if (internal::depth == 0 && result == kNcclSuccess) ++groups_open;
  return result;
}

LOCKSTEP_NCCL_VISIBLE int ncclGroupEnd() {
  LOCKSTEP_NCCL_BEGIN(GroupEnd);
  if (internal::depth == 0 && groups_open > 0) --groups_open;
  if (!Watching()) return real();
  const Open open(Enters(Call::kNcclGroupEnd, caller));
  const int result = open.Left(real());
  if (groups_open > 0) return result;
  if (result == kNcclSuccess) CollectAllComms();
  if (result == kNcclInProgress) CollectComms(nullptr);
  return result;
}

}  // namespace lockstep::watch::preload
