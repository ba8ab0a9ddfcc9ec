#include "stress/scenario/stream_race.h"

#include <cstddef>

namespace lockstep::stress::scenario {
namespace {

constexpr std::string_view kPatterns[] = {"missing_wait_before", "missing_wait_after",
                                          "buffer_reuse", "free_while_in_use", "event_before_work"};
constexpr std::string_view kGuards[] = {"none", "event", "stream_sync", "device_sync",
                                        "launch_blocking"};

}  // namespace

std::span<const std::string_view> RacePatternNames() { return kPatterns; }
std::span<const std::string_view> RaceGuardNames() { return kGuards; }
std::string_view NameOf(RacePattern pattern) {
  return kPatterns[static_cast<std::size_t>(pattern)];
}
std::string_view NameOf(RaceGuard guard) { return kGuards[static_cast<std::size_t>(guard)]; }

}  // namespace lockstep::stress::scenario
