// The file that a watched process and its watcher share: a header and chunks of events. The writer
// owns the memory and never waits. It prepares a chunk ahead: one that was read, or else a new one
// (a full /dev/shm is an error there, not a signal). So a reader that keeps up costs no page
// faults, and some chunks are all that is used. A whole ring behind, it stops for good. A loop of
// the same collectives takes no memory: its calls are counted in one event (kAgain).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "watch/events/event.h"

namespace lockstep::watch::events {

inline constexpr std::uint64_t kMagic = 0x3668637461776b6cULL;  // "lkwatch6"
inline constexpr std::uint64_t kChunkEvents = 4096;
inline constexpr std::uint64_t kChunks = 1024;
inline constexpr std::size_t kLibraryThreads = 16;
inline constexpr std::size_t kMostCallers = 64;
inline constexpr std::size_t kChunkBytes = kChunkEvents * sizeof(Event);
inline constexpr std::size_t kHeaderBytes = 12288;
inline constexpr std::size_t kSegmentBytes = kHeaderBytes + kChunks * kChunkBytes;

// The folder of segments, and what their names end in.
inline constexpr const char* kFolderVariable = "LOCKSTEP_WATCH_FOLDER";
inline constexpr const char* kSuffix = ".watch";

// In that folder: whom processes of the command told to end, each an Ending.
inline constexpr const char* kEndingsFile = "endings";

// Written before the signal is sent. `target` is that of kill(): a process, a group, or -1 for all.
// `ended_before`: the process, or the leader of the group, had ended by itself; else 0.
struct Ending {
  std::uint64_t ticks = 0;
  std::int64_t target = 0;
  std::int64_t ended_before = 0;
};

// Where it is set, somebody asked how long calls take. Else they have a stamp of their entry only.
inline constexpr const char* kTimesVariable = "LOCKSTEP_WATCH_TIMES";

// How watchers of several hosts meet: where it is set, MPI carries rank 0's file to all others.
inline constexpr const char* kMeetVariable = "LOCKSTEP_WATCH_MEET";
inline constexpr const char* kEndpointFile = "endpoint";
inline constexpr std::size_t kMostEndpointBytes = 255;

enum class Stopped : std::uint32_t {
  kNo,
  kRingFull,
  kNoSpace,
  kTooManyHandles,
  kReplaced,   // the process became another program
  kAbandoned,  // the watcher was killed
};

enum class Exit : std::uint32_t {
  kNo,    // not yet, or by a signal
  kExit,  // by return or exit()
  kQuit,  // by _exit(), which handlers of signals and libraries that give up may call
};

struct Header {
  std::atomic<std::uint64_t> magic;  // written last
  std::int32_t pid;
  std::int32_t launcher_rank;  // what the launcher says before MPI_Init knows
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> size;
  std::atomic<std::uint32_t> stopped;
  std::atomic<std::uint32_t> threads;  // more than one calls MPI at a time
  std::atomic<std::uint32_t> exited;   // how the process ended itself: an Exit
  std::atomic<std::int32_t> exit_code;
  std::atomic<std::uint64_t> head;   // events begun; one may say two things (HasLeft)
  std::atomic<std::uint64_t> tail;   // events whose chunks may be used again
  std::atomic<std::uint64_t> ready;  // chunks that were prepared: events are in these alone
  std::atomic<std::uint64_t> polls;  // tests that found nothing
  std::atomic<std::uint64_t> poll_site;
  std::atomic<Call> poll_call;
  std::uint64_t started;  // the process, in clock ticks since boot
  char job[256];          // what the launcher calls this launch
  char maps[6144];        // file names too long for it are cut off
  // Where a chunk lies in the file: chunk c at places[c % kChunks], counted in chunks.
  std::atomic<std::uint32_t> places[kChunks];
  // Threads that MPI_Init began, by the kernel's number; 0: none, or others may have been there.
  std::atomic<std::int32_t> library_threads[kLibraryThreads];
  std::atomic<std::uint64_t> counted;    // by events of kAgain, but for the newest event
  std::atomic<std::uint32_t> finalized;  // MPI_Finalize has returned
  std::uint64_t pid_namespace;           // of `pid`: its inode; 0: not known
  // Threads that have called, by CallerWord. The newest of those that share a place is there.
  std::atomic<std::uint64_t> callers[kMostCallers];
  std::atomic<std::uint64_t> exited_ticks;  // when it began to exit
  std::int32_t group;                       // of processes, in which it began
};
static_assert(sizeof(Header) <= kHeaderBytes);

// At callers[number % kMostCallers]: a thread's number in events, and the kernel's.
inline std::uint64_t CallerWord(std::uint16_t number, std::int32_t kernels) {
  return std::uint64_t{number} << 32 | static_cast<std::uint32_t>(kernels);
}
// The kernel's number of that thread; 0: not known.
inline std::int32_t CallerOf(const Header& header, std::uint16_t number) {
  const std::uint64_t word = header.callers[number % kMostCallers].load(std::memory_order_relaxed);
  return word >> 32 == number ? static_cast<std::int32_t>(word) : 0;
}

// From the beginning of the file, of an event in a chunk that is ready.
inline std::size_t OffsetOf(const Header& header, std::uint64_t event) {
  const std::uint32_t place =
      header.places[event / kChunkEvents % kChunks].load(std::memory_order_relaxed);
  return kHeaderBytes + place % kChunks * kChunkBytes + event % kChunkEvents * sizeof(Event);
}

}  // namespace lockstep::watch::events
