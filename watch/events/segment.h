// The file that a watched process and its watcher share: a header and a ring of events. The writer
// never waits. It allocates a chunk ahead (a full /dev/shm is an error there, not a signal), and
// stops for good when the reader is a whole ring behind. The reader gives read chunks back.
#ifndef LOCKSTEP_WATCH_EVENTS_SEGMENT_H_
#define LOCKSTEP_WATCH_EVENTS_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "watch/events/event.h"

namespace lockstep::watch::events {

inline constexpr std::uint64_t kMagic = 0x3168637461776b6cULL;  // "lkwatch1"
inline constexpr std::uint64_t kChunkEvents = 4096;
inline constexpr std::uint64_t kRingEvents = 1024 * kChunkEvents;
inline constexpr std::size_t kHeaderBytes = 8192;
inline constexpr std::size_t kSegmentBytes = kHeaderBytes + kRingEvents * sizeof(Event);

// The folder of segments, and what their names end in.
inline constexpr const char* kFolderVariable = "LOCKSTEP_WATCH_FOLDER";
inline constexpr const char* kSuffix = ".watch";

// How watchers of several hosts meet: where it is set, MPI carries rank 0's file to all others.
inline constexpr const char* kMeetVariable = "LOCKSTEP_WATCH_MEET";
inline constexpr const char* kEndpointFile = "endpoint";
inline constexpr std::size_t kMostEndpointBytes = 255;

enum class Stopped : std::uint32_t { kNo, kRingFull, kNoSpace, kTooManyHandles };

struct Header {
  std::atomic<std::uint64_t> magic;  // written last
  std::int32_t pid;
  std::int32_t launcher_rank;  // what the launcher says before MPI_Init knows
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> size;
  std::atomic<std::uint32_t> stopped;
  std::atomic<std::uint32_t> threads;  // more than one calls MPI at a time
  std::atomic<std::uint32_t> exited;   // the process ended by exit() or return
  std::atomic<std::int32_t> exit_code;
  std::atomic<std::uint64_t> head;   // events begun
  std::atomic<std::uint64_t> tail;   // events read
  std::atomic<std::uint64_t> polls;  // tests that found nothing
  std::atomic<std::uint64_t> poll_site;
  std::uint64_t started;  // the process, in clock ticks since boot
  char job[256];          // what the launcher calls this launch
  char maps[6144];        // file names too long for it are cut off
};
static_assert(sizeof(Header) <= kHeaderBytes);

}  // namespace lockstep::watch::events

#endif  // LOCKSTEP_WATCH_EVENTS_SEGMENT_H_
