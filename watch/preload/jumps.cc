// A handler of errors may leave a call of MPI without its return: by longjmp(), or by an exception.
// Nothing of that is replaced. But whoever calls MPI next is either a callback of the call before,
// which then is on the stack, or has left it.
#include <unwind.h>

#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
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

}  // namespace lockstep::watch::preload
