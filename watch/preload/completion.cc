// Wait and Test. A Test that finds nothing is counted, not written down: a program may poll
// millions of times a second. What a call completes is remembered from before it, because the
// library clears the handle.
#include <alloca.h>

#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
namespace {

constexpr int kMostRequests = 16384;

bool TooMany(int count) {
  if (count <= kMostRequests) return false;
  Stop(events::Stopped::kTooManyHandles);
  return true;
}

// The requests of one call as they were before it.
struct Before {
  RequestFacts* facts;
  MPI_Request* handles;
  MPI_Status* statuses;

  void Keep(int count, const MPI_Request* requests) const {
    for (int each = 0; each < count; ++each) {
      facts[each] = RequestOf(requests[each]);
      handles[each] = requests[each];
    }
  }
  void Over(Watched& call, int each, const MPI_Status* status) const {
    call.Over(handles[each], facts[each], status);
  }
};

}  // namespace
}  // namespace lockstep::watch::preload

// On this function's own stack: nothing is allocated, whatever the count.
#define LOCKSTEP_BEFORE(count)                                                             \
  if (preload::TooMany(count)) count = 0;                                                  \
  const std::size_t length = count > 0 ? static_cast<std::size_t>(count) : 1;              \
  const preload::Before before = {                                                         \
      static_cast<preload::RequestFacts*>(alloca(length * sizeof(preload::RequestFacts))), \
      static_cast<MPI_Request*>(alloca(length * sizeof(MPI_Request))),                     \
      static_cast<MPI_Status*>(alloca(length * sizeof(MPI_Status)))};                      \
  before.Keep(count, requests)

LOCKSTEP_WATCHED(Wait, (MPI_Request * request, MPI_Status* status), (request, status),
                 MPI_Status own;
                 if (status == MPI_STATUS_IGNORE) status = &own; preload::RequestFacts facts;
                 const MPI_Request kept = *request;
                 call.Requests(1, request, &facts),
                 if (result == MPI_SUCCESS) call.Over(kept, facts, status))

LOCKSTEP_WATCHED(
    Waitall, (int asked, MPI_Request requests[], MPI_Status* statuses), (asked, requests, statuses),
    int count = asked;
    LOCKSTEP_BEFORE(count);
    if (statuses == MPI_STATUSES_IGNORE && count == asked) statuses = before.statuses;
    call.Requests(count, requests, before.facts),
    for (int each = 0; result == MPI_SUCCESS && each < count;
         ++each) { before.Over(call, each, statuses + each); })

LOCKSTEP_WATCHED(
    Waitany, (int asked, MPI_Request requests[], int* index, MPI_Status* status),
    (asked, requests, index, status), int count = asked;
    LOCKSTEP_BEFORE(count); MPI_Status own; if (status == MPI_STATUS_IGNORE) status = &own;
    call.Requests(count, requests, before.facts),
    if (result == MPI_SUCCESS && *index >= 0 && *index < count) {
      before.Over(call, *index, status);
    })

LOCKSTEP_WATCHED(
    Waitsome, (int asked, MPI_Request requests[], int* over, int* indices, MPI_Status* statuses),
    (asked, requests, over, indices, statuses), int count = asked;
    LOCKSTEP_BEFORE(count);
    if (statuses == MPI_STATUSES_IGNORE && count == asked) statuses = before.statuses;
    call.Requests(count, requests, before.facts),
    for (int each = 0; result == MPI_SUCCESS && each < *over && *over <= count;
         ++each) { before.Over(call, indices[each], statuses + each); })

// As LOCKSTEP_WATCHED, but nothing is written before it is known that something was found.
#define LOCKSTEP_POLLED(NAME, PARAMS, ARGUMENTS, BEFORE, FOUND, AFTER)         \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {                    \
    using namespace lockstep::watch; /* NOLINT */                              \
    static int(*real) PARAMS = nullptr;                                        \
    if (!real) real = preload::Real<int PARAMS>("PMPI_" #NAME);                \
    if (!real) return MPI_ERR_OTHER;                                           \
    if (!preload::Watching()) return real ARGUMENTS;                           \
    preload::Watched call(events::Call::k##NAME, __builtin_return_address(0)); \
    BEFORE;                                                                    \
    const int result = real ARGUMENTS;                                         \
    if (result != MPI_SUCCESS || !(FOUND)) {                                   \
      if (preload::internal::header) preload::CountPoll(call.site());          \
      return result;                                                           \
    }                                                                          \
    call.Enter();                                                              \
    AFTER;                                                                     \
    call.Leave(result);                                                        \
    return result;                                                             \
  }                                                                            \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));

LOCKSTEP_POLLED(Test, (MPI_Request * requests, int* flag, MPI_Status* status),
                (requests, flag, status), int count = 1;
                LOCKSTEP_BEFORE(count); if (status == MPI_STATUS_IGNORE) status = before.statuses,
                                        *flag, before.Over(call, 0, status))

LOCKSTEP_POLLED(Testall, (int asked, MPI_Request requests[], int* flag, MPI_Status* statuses),
                (asked, requests, flag, statuses), int count = asked;
                LOCKSTEP_BEFORE(count);
                if (statuses == MPI_STATUSES_IGNORE && count == asked) statuses = before.statuses,
                *flag,
                for (int each = 0; each < count; ++each) before.Over(call, each, statuses + each))

LOCKSTEP_POLLED(Testany,
                (int asked, MPI_Request requests[], int* index, int* flag, MPI_Status* status),
                (asked, requests, index, flag, status), int count = asked;
                LOCKSTEP_BEFORE(count);
                if (status == MPI_STATUS_IGNORE) status = before.statuses,
                *flag&&* index >= 0 && *index < count, before.Over(call, *index, status))

LOCKSTEP_POLLED(Testsome,
                (int asked, MPI_Request requests[], int* over, int* indices, MPI_Status* statuses),
                (asked, requests, over, indices, statuses), int count = asked;
                LOCKSTEP_BEFORE(count);
                if (statuses == MPI_STATUSES_IGNORE && count == asked) statuses = before.statuses,
                *over > 0 && *over <= count,
                for (int each = 0; each < *over; ++each)
                    before.Over(call, indices[each], statuses + each))

LOCKSTEP_POLLED(Improbe,
                (int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                 MPI_Status* status),
                (source, tag, comm, flag, message, status), MPI_Status own;
                if (status == MPI_STATUS_IGNORE) status = &own;
                call.Receive(events::kUnknownCount, MPI_BYTE, source, tag, comm), *flag,
                call.Done(0, status))
