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
  Handle* handles;
  Statuses statuses;

  void Keep(int count, Handles requests) const {
    for (int each = 0; each < count; ++each) {
      facts[each] = RequestOf(requests[each]);
      handles[each] = requests[each];
    }
  }
  void Over(Watched& call, int each, Statuses status) const {
    call.Over(handles[each], facts[each], status);
  }
};

}  // namespace

// On this function's own stack: nothing is allocated, whatever the count.
#define LOCKSTEP_BEFORE(count)                                                              \
  if (TooMany(count)) count = 0;                                                            \
  const std::size_t length = count > 0 ? static_cast<std::size_t>(count) : 1;               \
  const Before before = {static_cast<RequestFacts*>(alloca(length * sizeof(RequestFacts))), \
                         static_cast<Handle*>(alloca(length * sizeof(Handle))),             \
                         Statuses{alloca(length * abi.status_bytes)}};                      \
  before.Keep(count, requests)

LOCKSTEP_WATCHED(Wait, (Handles request, Statuses status), (request, status), OwnStatus own;
                 if (status.Ignored()) status = {&own}; RequestFacts facts;
                 const Handle kept = *request;
                 call.Requests(1, request, &facts),
                 if (TookMessage(result)) call.Over(kept, facts, status))

LOCKSTEP_WATCHED(
    Waitall, (int asked, Handles requests, Statuses statuses), (asked, requests, statuses),
    int count = asked;
    LOCKSTEP_BEFORE(count); if (statuses.Ignored() && count == asked) statuses = before.statuses;
    call.Requests(count, requests, before.facts), for (int each = 0; each < count; ++each) {
      if (IsOver(result, statuses + each)) before.Over(call, each, statuses + each);
    })

LOCKSTEP_WATCHED(
    Waitany, (int asked, Handles requests, int* index, Statuses status),
    (asked, requests, index, status), int count = asked;
    LOCKSTEP_BEFORE(count); OwnStatus own; if (status.Ignored()) status = {&own};
    call.Requests(count, requests, before.facts),
    if (TookMessage(result) && *index >= 0 && *index < count) {
      before.Over(call, *index, status);
    })

LOCKSTEP_WATCHED(
    Waitsome, (int asked, Handles requests, int* over, int* indices, Statuses statuses),
    (asked, requests, over, indices, statuses), int count = asked;
    LOCKSTEP_BEFORE(count); if (statuses.Ignored() && count == asked) statuses = before.statuses;
    call.Requests(count, requests, before.facts),
    for (int each = 0; each < *over && *over <= count; ++each) {
      if (IsOver(result, statuses + each)) before.Over(call, indices[each], statuses + each);
    })

LOCKSTEP_POLLED(Test, (Handles requests, int* flag, Statuses status), (requests, flag, status),
                int count = 1;
                LOCKSTEP_BEFORE(count);
                if (status.Ignored()) status = before.statuses, *flag, before.Over(call, 0, status))

LOCKSTEP_POLLED(
    Testall, (int asked, Handles requests, int* flag, Statuses statuses),
    (asked, requests, flag, statuses), int count = asked;
    LOCKSTEP_BEFORE(count); if (statuses.Ignored() && count == asked) statuses = before.statuses,
                            *flag, for (int each = 0; each < count; ++each) {
                              if (IsOver(result, statuses + each))
                                before.Over(call, each, statuses + each);
                            })

LOCKSTEP_POLLED(Testany, (int asked, Handles requests, int* index, int* flag, Statuses status),
                (asked, requests, index, flag, status), int count = asked;
                LOCKSTEP_BEFORE(count);
                if (status.Ignored()) status = before.statuses,
                *flag&&* index >= 0 && *index < count, before.Over(call, *index, status))

LOCKSTEP_POLLED(
    Testsome, (int asked, Handles requests, int* over, int* indices, Statuses statuses),
    (asked, requests, over, indices, statuses), int count = asked;
    LOCKSTEP_BEFORE(count); if (statuses.Ignored() && count == asked) statuses = before.statuses,
                            *over > 0 && *over <= count, for (int each = 0; each < *over; ++each) {
                              if (IsOver(result, statuses + each)) {
                                before.Over(call, indices[each], statuses + each);
                              }
                            })

// The message stays where it is.
LOCKSTEP_POLLED(Iprobe, (int source, int tag, Handle comm, int* flag, Statuses status),
                (source, tag, comm, flag, status), call.Receive(0, abi.byte, source, tag, comm),
                *flag, )

LOCKSTEP_POLLED(Improbe,
                (int source, int tag, Handle comm, int* flag, void* message, Statuses status),
                (source, tag, comm, flag, message, status), OwnStatus own;
                if (status.Ignored()) status = {&own};
                call.Receive(events::kUnknownCount, abi.byte, source, tag, comm), *flag,
                call.Done(0, status))

}  // namespace lockstep::watch::preload
