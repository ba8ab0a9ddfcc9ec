// A custom kernel and a collective on two streams: the `stream_race` workload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/ddp/training.h"

namespace lockstep::stress::scenario {

// What the program forgets. Sources: pytorch PR#18465 and #19267 (waits), PR#112195
// (record_stream).
enum class RacePattern : std::uint8_t {
  kMissingWaitBefore,  // the collective does not wait for the kernel that writes its input
  kMissingWaitAfter,   // the kernel that reads the result does not wait for the collective
  kBufferReuse,        // a kernel writes the next input over the one that is still being sent
  kFreeWhileInUse,     // … or an allocator gives the memory to somebody else
  kEventBeforeWork,    // the event that is waited for was recorded before the kernel was enqueued
};
// The cure.
enum class RaceGuard : std::uint8_t {
  kNone,
  kEvent,           // the one stream waits for an event of the other; the host goes on
  kStreamSync,      // the host waits for the one stream
  kDeviceSync,      // … for all streams
  kLaunchBlocking,  // … after every launch, as with CUDA_LAUNCH_BLOCKING=1
};

inline constexpr std::string_view kRacePatternNames[] = {"missing_wait_before",
                                                         "missing_wait_after", "buffer_reuse",
                                                         "free_while_in_use", "event_before_work"};
inline constexpr std::string_view kRaceGuardNames[] = {"none", "event", "stream_sync",
                                                       "device_sync", "launch_blocking"};
inline std::string_view NameOf(RacePattern pattern) {
  return kRacePatternNames[static_cast<std::size_t>(pattern)];
}
inline std::string_view NameOf(RaceGuard guard) {
  return kRaceGuardNames[static_cast<std::size_t>(guard)];
}

// Every key of the workload and its default.
struct StreamRaceProgram {
  RacePattern pattern = RacePattern::kMissingWaitBefore;
  RaceGuard guard = RaceGuard::kNone;
  std::int64_t rounds = 40;
  std::int64_t count = 16384;  // elements (f32)
  double work_us = 1000;       // of the kernel; a round's is from half to one and a half times that
  // What the program itself does after its launches: waiting on the host costs this overlap.
  double host_us = 500;
  ddp::AfterFinish after_finish = ddp::AfterFinish::kExit;
};

}  // namespace lockstep::stress::scenario
