#include "core/control/facts.h"

#include <fmt/core.h>

#include <limits>

namespace lockstep::control {
namespace {

constexpr int kReadings = 16;

}  // namespace

// The tightest of several: one that was not interrupted between its parts.
ClockReading ReadClock(double ns_per_tick) {
  ClockReading best;
  best.window_ns = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const std::int64_t before_ns = ClockNs(CLOCK_MONOTONIC_RAW);
    const std::int64_t day_ns = ClockNs(CLOCK_REALTIME);
    const Ticks ticks = NowTicks();
    const std::int64_t after_ns = ClockNs(CLOCK_MONOTONIC_RAW);
    if (after_ns - before_ns >= best.window_ns) continue;
    best = {ticks, (before_ns + after_ns) / 2, day_ns, after_ns - before_ns, ns_per_tick};
  }
  return best;
}

std::string EncodeRole(const ChildRole& role) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", static_cast<int>(role.kind), role.channel_fd,
                     role.segment_fd, role.agent_pid, role.rank, role.size, role.local_rank,
                     role.lifetime, role.open_files);
}

std::optional<ChildRole> DecodeRole(const std::string& text) {
  ChildRole role;
  int kind = 0;
  char more = 0;
  const int fields =
      std::sscanf(text.c_str(), "%d %d %d %d %d %d %d %d %llu%c", &kind, &role.channel_fd,
                  &role.segment_fd, &role.agent_pid, &role.rank, &role.size, &role.local_rank,
                  &role.lifetime, &role.open_files, &more);
  if (fields != 9 || kind < 0 || kind > static_cast<int>(ChildRole::Kind::kExchangingWorker) ||
      role.channel_fd < 0 || role.rank < 0 || role.rank >= role.size) {
    return std::nullopt;
  }
  role.kind = static_cast<ChildRole::Kind>(kind);
  return role;
}

}  // namespace lockstep::control
