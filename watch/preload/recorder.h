// Writes this process's events into its segment. Nothing here throws, allocates or waits.
#ifndef LOCKSTEP_WATCH_PRELOAD_RECORDER_H_
#define LOCKSTEP_WATCH_PRELOAD_RECORDER_H_

#include <cstddef>
#include <cstdint>

#include "watch/events/event.h"
#include "watch/events/segment.h"

namespace lockstep::watch::preload {

namespace internal {
extern events::Header* header;  // null: this process is not watched
inline constinit thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;
}  // namespace internal

// Is this call the program's own, and to be written down?
inline bool Watching() { return internal::header != nullptr && internal::depth == 0; }

// Makes the segment in the watcher's folder. False, with one line on stderr, where it can't.
bool OpenSegment();
// "process 12 is not watched: WHAT", in one line on stderr.
void Say(const char* what);
void SetRank(int rank, int size, bool threads);
void Stop(events::Stopped why);
void Write(const events::Event& event);
void CountPoll(std::uint64_t site);

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

#endif  // LOCKSTEP_WATCH_PRELOAD_RECORDER_H_
