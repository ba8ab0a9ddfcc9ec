// One macro makes MPI_X and PMPI_X: write down what is asked, forward, write down what came of it.
// The names of a program's calls inside the library's own are not seen (a depth per thread), so a
// collective that the library builds from messages stays one event.
#pragma once

#include <cstdint>

#include "watch/events/event.h"
#include "watch/preload/mpi_names.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

// Whether an error of MPI is of this class.
bool IsOf(int error, int error_class);

namespace internal {
// The call of MPI that the thread is in. `frame`: an address in its own frame; null: it is in none.
// `site`: where it returns to; null: that and its name are those of the call counted last.
struct Outer {
  const void* frame = nullptr;
  const void* site = nullptr;
  events::Call call = events::Call::kNone;
};
inline constinit thread_local Outer outer __attribute__((tls_model("initial-exec")));
// The program calls from `site`, and the thread is in a call. Has it left that one by longjmp() or
// an exception? Then its return is written down. False: it is called by a callback, or not known.
bool LeftOuter(const void* site);
}  // namespace internal

// Of a library whose handles are known, and called by the program?
inline bool IsOfProgram(const void* site) {
  return internal::header && abi.handle_bytes != 0 && !OfLibrary(site);
}
// The same, and not inside another call.
inline bool WatchingMpi(const void* site) {
  return IsOfProgram(site) && (internal::depth == 0 || internal::LeftOuter(site));
}

// A receive that returned `error` took a message: also one that was larger than its buffer.
inline bool TookMessage(int error) {
  return error == kMpiSuccess || IsOf(error, abi.error_truncate);
}
// The same of one of several requests, which has `status`, where their call returned `error`.
inline bool IsOver(int error, Statuses status) {
  return error == kMpiSuccess || (IsOf(error, abi.error_in_status) && TookMessage(status.Error()));
}

// … of one or several.
inline bool MayHaveFound(int error) {
  return TookMessage(error) || IsOf(error, abi.error_in_status);
}

// A return that needs an event of its own. `ticks`: when it is said to be; 0: now.
inline void WriteLeave(events::Call call, int error, std::uint64_t ticks) {
  events::Event event;
  event.phase = events::Phase::kLeave;
  event.call = call;
  event.peer = error;
  event.ticks = ticks;
  Write(event);
}

// One call of the program, from its entry to its return. What most calls do is inlined.
class Watched {
 public:
  Watched(events::Call call, void* site) {
    ++internal::depth;
    internal::outer = {this, site, call};
    event_.call = call;
    event_.site = reinterpret_cast<std::uint64_t>(site);
  }
  ~Watched() {
    --internal::depth;
    internal::outer = {};
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void Message(std::int64_t count, Handle type, int peer, int tag, Handle comm,
               std::uint8_t flags = 0) {
    event_.comm = CommOf(comm);
    event_.peer = peer == abi.proc_null ? events::kProcNull : peer;
    event_.tag = tag;
    event_.flags |= flags;
    Data(count, type);
  }
  void Receive(std::int64_t count, Handle type, int source, int tag, Handle comm) {
    event_.comm = CommOf(comm);
    event_.peer = SourceOf(source);
    event_.tag = TagOf(tag);
    event_.flags |= events::kReceiving;
    Data(count, type);
  }
  // `request`: of the send alone; 0: the call has none.
  void SendPart(std::int64_t count, Handle type, int peer, int tag, Handle comm,
                std::uint32_t request = 0);
  void Collective(Handle comm, int root = events::kNoRoot, std::int32_t op = events::kNoOp) {
    collective_ = true;
    event_.comm = CommOf(comm);
    event_.peer = root;
    event_.tag = op;
  }
  void OnComm(std::uint64_t comm);  // a window's or a file's, or callers'
  // Of one side of an inter-communicator: its leader meets that of the other side.
  void Led(Handle comm, int leader, Handle peer_comm, int peer, int tag);
  void Data(std::int64_t count, Handle type) {
    const Elements elements = ElementsOf(type, count);
    event_.type = elements.type;
    event_.count = elements.count;
  }
  void Data2(std::int64_t count, Handle type);
  void TypeOnly(Handle type);  // counts differ from peer to peer
  void BadArgument();
  // Of a collective with a count for each member: no other one gives nothing.
  void AllGive() { event_.flags |= events::kAllGive; }
  // Of a collective: member `rank` must have entered it before this one can leave.
  void NeedsPart(int rank);
  // Of one member of a window.
  void At(std::int32_t target, std::uint8_t flags) {
    event_.peer = target;
    event_.flags |= flags;
  }

  void Enter() {
    event_.phase = events::Phase::kEnter;
    event_.ticks = collective_ && event_.request == 0 ? WriteCollective(event_) : Write(event_);
  }
  // Of a collective that may come again.
  void Enter(const AsCalled& as_called, const void* forward) {
    Enter();
    internal::repeats.Learn(as_called, forward);
  }
  void Done(std::uint32_t request, Statuses status);
  void Leave(int error) {
    if (!internal::times && error == kMpiSuccess && LeaveInPlace()) return;
    WriteLeave(event_.call, error, internal::times ? 0 : event_.ticks);
  }

  std::uint32_t Post(std::uint8_t flags = 0);  // numbers the request this call leaves
  // `send`: the request of its send, where it has another one.
  void Posted(Handle request, int error, std::uint32_t send = 0);
  void Requests(int count, Handles requests, RequestFacts* facts);
  // What of `facts` is over: forgets it where it is not persistent.
  void Over(Handle handle, const RequestFacts& facts, Statuses status);

  std::uint64_t site() const { return event_.site; }

 private:
  events::Event event_;
  bool collective_ = false;
};

// What counts and displacements are in MPI's calls, and in those with large counts.
namespace of_int {
using Count = int;
using Place = int;
}  // namespace of_int
namespace of_count {
using Count = std::int64_t;
using Place = Aint;
}  // namespace of_count

inline std::uint64_t WordOf(int value) { return static_cast<std::uint32_t>(value); }
inline std::uint64_t WordOf(Handle handle) { return handle.word; }
template <typename... Words>
AsCalled CalledAs(events::Call call, const void* site, Words... words) {
  return {site, static_cast<std::uint64_t>(call), {WordOf(words)...}};
}

// Of a call that comes again: it returns.
[[gnu::always_inline]] inline int LeaveAgain(events::Call call, int error) {
  const bool counts = error == kMpiSuccess && internal::repeats.counting();
  if (!counts || !internal::repeats.Leave()) [[unlikely]] WriteLeave(call, error, 0);
  --internal::depth;
  internal::outer.frame = nullptr;
  return error;
}

}  // namespace lockstep::watch::preload

#define LOCKSTEP_UNPACK(...) __VA_ARGS__
#define LOCKSTEP_WATCH_VISIBLE __attribute__((visibility("default")))

// How each begins: the library's own function NAME, where it is not watched. The judge knows it as
// CALL.
#define LOCKSTEP_BEGIN(CALL, NAME, PARAMS, ARGUMENTS)                          \
  const auto real = FoundOnce([] { return Real<int PARAMS>("PMPI_" #NAME); }); \
  if (!real) return kMpiErrOther;                                              \
  if (!WatchingMpi(site)) return real ARGUMENTS;                               \
  Watched call(events::Call::k##CALL, site)

// NAME without MPI_; PARAMS and ARGUMENTS in parentheses; BEFORE and AFTER are statements that see
// the parameters, `call`, and (AFTER only) `result`. Inside this namespace.
#define LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, BEFORE, AFTER) \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {      \
    void* const site = __builtin_return_address(0);              \
    LOCKSTEP_BEGIN(NAME, NAME, PARAMS, ARGUMENTS);               \
    BEFORE;                                                      \
    call.Enter();                                                \
    const int result = real ARGUMENTS;                           \
    AFTER;                                                       \
    call.Leave(result);                                          \
    return result;                                               \
  }                                                              \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));

// As LOCKSTEP_WATCHED, of a function of MPI 4. A program may ask whether it is there: where its
// library has none, the address is null. So the dynamic linker asks us for it.
#define LOCKSTEP_WATCHED_NEW(CALL, NAME, PARAMS, ARGUMENTS, BEFORE, AFTER)            \
  static int NAME##Watched PARAMS {                                                   \
    void* const site = __builtin_return_address(0);                                   \
    LOCKSTEP_BEGIN(CALL, NAME, PARAMS, ARGUMENTS);                                    \
    BEFORE;                                                                           \
    call.Enter();                                                                     \
    const int result = real ARGUMENTS;                                                \
    AFTER;                                                                            \
    call.Leave(result);                                                               \
    return result;                                                                    \
  }                                                                                   \
  extern "C" {                                                                        \
  LOCKSTEP_UNCHECKED [[gnu::used]] static decltype(&NAME##Watched) Find##NAME() {     \
    return MayHave("PMPI_" #NAME) ? &NAME##Watched : nullptr;                         \
  }                                                                                   \
  LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS __attribute__((ifunc("Find" #NAME)));  \
  LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((ifunc("Find" #NAME))); \
  }

// As LOCKSTEP_WATCHED, and the same with large counts: MPI_Send and MPI_Send_c. In PARAMS these are
// Count, and displacements are Place.
#define LOCKSTEP_SIZED(NAME, PARAMS, ARGUMENTS, BEFORE, AFTER)                                  \
  namespace of_int {                                                                            \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, BEFORE, AFTER)                                      \
  }                                                                                             \
  namespace of_count {                                                                          \
  LOCKSTEP_WATCHED_NEW(NAME, NAME##_c, PARAMS, ARGUMENTS, BEFORE, AFTER)                        \
  }
// The same of what came with MPI 4 itself.
#define LOCKSTEP_SIZED_NEW(NAME, PARAMS, ARGUMENTS, BEFORE, AFTER)                              \
  namespace of_int {                                                                            \
  LOCKSTEP_WATCHED_NEW(NAME, NAME, PARAMS, ARGUMENTS, BEFORE, AFTER)                            \
  }                                                                                             \
  namespace of_count {                                                                          \
  LOCKSTEP_WATCHED_NEW(NAME, NAME##_c, PARAMS, ARGUMENTS, BEFORE, AFTER)                        \
  }

// As LOCKSTEP_WATCHED, of a blocking collective that is counted where it comes again: WORDS are the
// parameters of which BEFORE tells. Its way then touches as little memory as can be.
#define LOCKSTEP_COUNTED(NAME, PARAMS, ARGUMENTS, WORDS, BEFORE)                                   \
  [[gnu::noinline]] static int NAME##Written(LOCKSTEP_UNPACK PARAMS, const AsCalled& as_called) {  \
    void* const site = const_cast<void*>(as_called.site);                                          \
    LOCKSTEP_BEGIN(NAME, NAME, PARAMS, ARGUMENTS);                                                 \
    BEFORE;                                                                                        \
    call.Enter(as_called, reinterpret_cast<const void*>(real));                                    \
    const int result = real ARGUMENTS;                                                             \
    call.Leave(result);                                                                            \
    return result;                                                                                 \
  }                                                                                                \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {                                        \
    const AsCalled as_called = CalledAs(events::Call::k##NAME, __builtin_return_address(0),        \
                                        LOCKSTEP_UNPACK WORDS);                                    \
    const void* const again = ComesAgain(as_called);                                               \
    if (!again) return NAME##Written(LOCKSTEP_UNPACK ARGUMENTS, as_called);                        \
    internal::outer.frame = __builtin_frame_address(0);                                            \
    return LeaveAgain(events::Call::k##NAME, reinterpret_cast<int(*) PARAMS>(again) ARGUMENTS);    \
  }                                                                                                \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));

// As LOCKSTEP_WATCHED, but nothing is written before it is known that something was found.
#define LOCKSTEP_POLLED(NAME, PARAMS, ARGUMENTS, BEFORE, FOUND, AFTER) \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME PARAMS {            \
    void* const site = __builtin_return_address(0);                    \
    LOCKSTEP_BEGIN(NAME, NAME, PARAMS, ARGUMENTS);                     \
    BEFORE;                                                            \
    const int result = real ARGUMENTS;                                 \
    if (!MayHaveFound(result) || !(FOUND)) {                           \
      if (events::Header* const to = internal::header) {               \
        CountPoll(*to, events::Call::k##NAME, call.site());            \
      }                                                                \
      return result;                                                   \
    }                                                                  \
    call.Enter();                                                      \
    AFTER;                                                             \
    call.Leave(result);                                                \
    return result;                                                     \
  }                                                                    \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME PARAMS __attribute__((alias("MPI_" #NAME)));
