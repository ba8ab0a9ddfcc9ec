// Writes this process's events into its segment. Nothing here throws, allocates or waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "watch/events/event.h"
#include "watch/events/segment.h"
#include "watch/events/ticks.h"
#include "watch/preload/handles.h"
#include "watch/preload/repeats.h"

namespace lockstep::watch::preload {

namespace internal {
extern events::Header* header;     // null: this process is not watched
extern bool times;                 // the moments at which calls return are wanted, too
extern events::Event* newest;      // while one thread writes: what it wrote last; null: not known
inline constinit Repeats repeats;  // while one thread writes, and nobody asks how long calls take
inline constinit thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;
inline constinit thread_local std::uint16_t thread_number
    __attribute__((tls_model("initial-exec"))) = 0;

std::uint16_t NumberThread();
inline std::uint16_t NumberOfThread() {
  return thread_number != 0 ? thread_number : NumberThread();
}
// An event that was not counted: it is written down, or those like it are counted from now on.
std::uint64_t WriteOrCount(const events::Event& event);
// The calls that were counted come no more.
void EndRepeats(events::Header& to);
// Makes ready the chunk behind that of `event`. False: recording has stopped.
bool PrepareChunkAfter(events::Header& to, std::uint64_t event);
// Of several threads. Null: recording has stopped.
events::Event* ClaimBesideOthers(events::Header& to);

inline events::Event* PlaceOf(events::Header& of, std::uint64_t event) {
  return reinterpret_cast<events::Event*>(reinterpret_cast<char*>(&of) +
                                          events::OffsetOf(of, event));
}

// The next event's place. A locked instruction would wait for all that was written before.
inline events::Event* Claim(events::Header& to) {
  if (several_threads) return ClaimBesideOthers(to);
  const std::uint64_t number = to.head.load(std::memory_order_relaxed);
  to.head.store(number + 1, std::memory_order_relaxed);
  if (number % events::kChunkEvents == 0 && !PrepareChunkAfter(to, number)) return nullptr;
  return PlaceOf(to, number);
}

// The reader's processor has this line: it takes a while to get it back.
inline void FetchToWrite(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}
}  // namespace internal

// Is this call the program's own, and to be written down?
inline bool Watching() { return internal::header != nullptr && internal::depth == 0; }

// Makes the segment in the watcher's folder. False, with one line on stderr, where it can't.
bool OpenSegment();
// "process 12 is not watched: WHAT", in one line on stderr.
void Say(const char* what);
void SetRank(int rank, int size, bool threads);
void Stop(events::Stopped why);
void CountPoll(events::Header& to, events::Call call, std::uint64_t site);
void NoteEnd(events::Exit how);
void AwaitExit();

// gloo's and NCCL's calls come from any thread, whatever MPI was told.
inline constinit bool any_thread_calls = false;
inline void AnyThreadCalls() {
  if (internal::header && internal::repeats.counting()) internal::EndRepeats(*internal::header);
  several_threads = any_thread_calls = true;
}

// Inlined, so that a call's fields go from registers to their place. An event that has no stamp
// gets one, which takes as long as all the rest. The stamp; 0: nothing was written.
[[gnu::always_inline]] inline std::uint64_t Write(const events::Event& event) {
  events::Header* const header = internal::header;
  if (!header) return 0;
  if (internal::repeats.counting()) internal::EndRepeats(*header);
  events::Event* const place = internal::Claim(*header);
  if (!place) return 0;
  events::Event whole = event;
  whole.phase = events::Phase::kNothing;
  whole.thread = internal::NumberOfThread();
  if (whole.ticks == 0) whole.ticks = events::NowTicks();
  *place = whole;
  std::atomic_ref<events::Phase>(place->phase).store(event.phase, std::memory_order_release);
  if (!several_threads) internal::newest = place;
  internal::FetchToWrite(place + 2);
  return whole.ticks;
}

// The same of a collective that is entered, and may be one of those that come again and again. The
// stamp; 0: it was only counted, or not even that.
[[gnu::always_inline]] inline std::uint64_t WriteCollective(events::Event& event) {
  if (several_threads || internal::times || !internal::header) return Write(event);
  event.thread = internal::NumberOfThread();
  if (internal::repeats.counting() && internal::repeats.Enter(event)) return 0;
  return internal::WriteOrCount(event);
}

// A collective that comes again, called as before, is counted before anything of it is translated.
// The function that it goes to, and a depth more; null: not so.
[[gnu::always_inline]] inline const void* ComesAgain(const AsCalled& call) {
  if (internal::depth != 0) return nullptr;
  const void* const forward = internal::repeats.Again(call, internal::thread_number);
  if (forward) internal::depth = 1;
  return forward;
}

// The call that wrote last returns, and its event says so. False: that needs an event of its own.
[[gnu::always_inline]] inline bool LeaveInPlace() {
  if (!internal::header || several_threads) return false;
  if (internal::repeats.counting()) return internal::repeats.Leave();
  if (!internal::newest) return false;
  const std::atomic_ref<events::Phase> phase(internal::newest->phase);
  const events::Phase left = events::LeftAfter(phase.load(std::memory_order_relaxed));
  if (left == events::Phase::kNothing) return false;
  phase.store(left, std::memory_order_release);
  return true;
}

// FNV-1a, to be continued from `before`.
inline std::uint64_t HashBytes(std::uint64_t before, const void* data, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; ++at) {
    before = (before ^ static_cast<const unsigned char*>(data)[at]) * 0x100000001b3ULL;
  }
  return before;
}

// The function of the library, or null. Python loads MPI in a scope that RTLD_NEXT doesn't see.
void* FindFunction(const char* name);

}  // namespace lockstep::watch::preload
