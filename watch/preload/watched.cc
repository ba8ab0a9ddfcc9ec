// What every wrapped call writes: its entry, what it posts, what came of it. A depth per thread
// keeps the library's own calls out. Requests get a number when they are posted and lose it when
// they are done, unless they are persistent.
#include "watch/preload/watched.h"

#include <unwind.h>

#include "watch/preload/callers.h"

namespace lockstep::watch::preload {

using events::Event;
using events::Phase;

namespace {

constexpr int kEnough = 2;  // frames: of a call, and of its caller

struct Walk {
  std::uintptr_t site;   // of the call that is made now
  std::uintptr_t outer;  // of the call before
  std::uintptr_t frame;
  bool at_caller = false;  // frames from here on are the program's, or callbacks' callers
  int above = 0;           // frames that began before the call's before
  bool inside = false;     // that call is still on the stack
};

// Of a function: where it goes on, and its stack's end as it called.
_Unwind_Reason_Code See(_Unwind_Context* context, void* seen) {
  Walk& walk = *static_cast<Walk*>(seen);
  const std::uintptr_t at = _Unwind_GetIP(context);
  const bool above = _Unwind_GetCFA(context) > walk.frame;
  if (!walk.at_caller) {
    walk.at_caller = at == walk.site;
    walk.above = walk.at_caller && above ? kEnough : 0;
  } else {
    walk.above += above ? 1 : 0;
    walk.inside = above && at == walk.outer;
  }
  return walk.inside || walk.above >= kEnough ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

// A handler of errors may leave a call of MPI without its return: by longjmp(), or by an exception.
// Nothing of that is replaced. But whoever calls MPI next is either a callback of the call before,
// which then is on the stack, or has left it.
// Where the unwinder does not get past that call, it may be of a callback without tables.
bool internal::LeftOuter(const void* site) {
  if (depth != 1 || !outer.frame) return false;
  const AsCalled& last = repeats.Last();
  const Outer left =
      outer.site ? outer : Outer{outer.frame, last.site, static_cast<events::Call>(last.call)};
  Walk walk = {reinterpret_cast<std::uintptr_t>(site), reinterpret_cast<std::uintptr_t>(left.site),
               reinterpret_cast<std::uintptr_t>(left.frame)};
  _Unwind_Backtrace(See, &walk);
  if (walk.inside || walk.above < kEnough) return false;
  WriteLeave(left.call, kMpiErrOther, 0);
  depth = 0;
  outer = {};
  return true;
}

bool IsOf(int error, int error_class) {
  const auto class_of = FoundOnce([] { return Real<int(int, int*)>("PMPI_Error_class"); });
  int its = kMpiSuccess;
  return class_of(error, &its) == kMpiSuccess && its == error_class;
}

void Watched::SendPart(std::int64_t count, Handle type, int peer, int tag, Handle comm,
                       std::uint32_t request) {
  event_.ticks = events::NowTicks();
  const Event kept = event_;
  event_.request = request;
  Message(count, type, peer, tag, comm);
  event_.phase = Phase::kPart;
  Write(event_);
  event_ = kept;
}

void Watched::NeedsPart(int rank) {
  event_.ticks = events::NowTicks();
  Event part = event_;
  part.phase = Phase::kPart;
  part.request = 0;
  part.peer = rank;
  Write(part);
}

void Watched::OnComm(std::uint64_t comm) {
  event_.comm = comm;
  event_.peer = events::kNoRoot;
  event_.tag = events::kNoOp;
}

void Watched::Led(Handle comm, int leader, Handle peer_comm, int peer, int tag) {
  const auto comm_rank = FoundOnce([] { return Real<int(Handle, int*)>("PMPI_Comm_rank"); });
  OnComm(CommOf(comm));
  event_.count2 = leader;
  int rank = -1;
  if (event_.comm > events::kFreedComm) comm_rank(comm, &rank);
  if (rank != leader) return;
  Event part = event_;
  part.phase = Phase::kPart;
  part.comm = CallersOfPair(peer_comm, peer, tag, event_.call);
  if (part.comm > events::kFreedComm) Write(part);
}

void Watched::Data2(std::int64_t count, Handle type) {
  const Elements elements = ElementsOf(type, count);
  const bool fits = elements.count >= 0 && elements.count < INT32_MAX;
  event_.type2 = elements.type;
  event_.count2 = fits ? static_cast<std::int32_t>(elements.count) : events::kUnknown;
}

void Watched::TypeOnly(Handle type) {
  Data(1, type);
  event_.count = events::kUnknownCount;
}

void Watched::BadArgument() { event_.flags |= events::kBadArgument; }

void Watched::Done(std::uint32_t request, Statuses status) {
  Event event;
  event.phase = Phase::kDone;
  event.call = event_.call;
  event.request = request;
  event.comm = event_.comm;
  event.flags = events::kNoMessage;
  if (!internal::times) event.ticks = event_.ticks;
  if (!status.Ignored()) {
    // MPICH says nothing of it in the status of a probe, which holds there what it held before.
    int cancelled = 0;
    const auto test_cancelled =
        FoundOnce([] { return Real<int(const void*, int*)>("PMPI_Test_cancelled"); });
    if (request != 0) test_cancelled(status.at, &cancelled);
    event.flags = cancelled ? events::kCancelled : 0;
    event.peer = SourceOf(status.Source());
    event.tag = TagOf(status.Tag());
  }
  Write(event);
}

std::uint32_t Watched::Post(std::uint8_t flags) {
  event_.request = NewRequest();
  event_.flags |= flags;
  return event_.request;
}

void Watched::Posted(Handle request, int error, std::uint32_t send) {
  if (error == kMpiSuccess) {
    RememberRequest(request, {event_.request, event_.flags, send});
  }
}

void Watched::Requests(int count, Handles requests, RequestFacts* facts) {
  event_.ticks = events::NowTicks();
  for (int each = 0; each < count; ++each) {
    facts[each] = RequestOf(requests[each]);
    const bool known = facts[each].number != 0;
    if (!known && requests[each] == abi.request_null) continue;
    Event part;
    part.phase = Phase::kPart;
    part.call = event_.call;
    part.site = event_.site;
    part.ticks = event_.ticks;
    part.request = known ? facts[each].number : events::kOtherRequest;
    Write(part);
    part.request = facts[each].send;
    part.part = 1;
    if (part.request != 0) Write(part);
  }
}

void Watched::Over(Handle handle, const RequestFacts& facts, Statuses status) {
  if (facts.number == 0) return;
  const bool persistent = (facts.flags & events::kPersistent) != 0;
  // A handle may stand for several requests that are over: the next of these.
  const RequestFacts over = persistent ? facts : ForgetRequest(handle, facts.number);
  if (over.send != 0) {
    // MPICH 4.0 leaves such a status as it was.
    status = {reinterpret_cast<void*>(abi.status_ignore)};
    Done(over.send, status);
  }
  if (over.number != 0) Done(over.number, status);
}

}  // namespace lockstep::watch::preload
