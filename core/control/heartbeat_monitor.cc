#include "core/control/heartbeat_monitor.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace lockstep::control {

Result<double> LostSecondsFrom(const char* text) {
  if (text == nullptr || *text == '\0') return kLostSeconds;
  const std::string_view given = text;
  double seconds = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), seconds);
  if (error != std::errc() || end != given.data() + given.size() || !(seconds >= 2) ||
      seconds > 3600) {
    return InvalidInput(
        "LOCKSTEP_LOST_SECONDS='{}' is no number from 2 to 3600: so long nothing may be heard of a "
        "rank's agent before its host is taken for lost",
        text);
  }
  return seconds;
}

HeartbeatMonitor::HeartbeatMonitor(double lost_seconds, std::int64_t now_ns)
    : lost_ns_(static_cast<std::int64_t>(lost_seconds * 1e9)),
      heartbeat_ns_(lost_ns_ / 4),
      next_heartbeat_ns_(heartbeat_ns_),
      last_turn_ns_(now_ns) {}

std::int64_t HeartbeatMonitor::Turn(std::int64_t now_ns) {
  // The others heard of it for the last time up to a heartbeat earlier.
  const std::int64_t gap_ns = now_ns - last_turn_ns_;
  const bool too_long = gap_ns > lost_ns_ - heartbeat_ns_;
  last_turn_ns_ = now_ns;
  awake_ns_ += std::clamp<std::int64_t>(gap_ns, 0, lost_ns_ / 3);
  if (too_long) woke_ns_ = awake_ns_;
  return awake_ns_;
}

bool HeartbeatMonitor::TakeHeartbeat(std::int64_t awake_ns) {
  if (awake_ns < next_heartbeat_ns_) return false;
  next_heartbeat_ns_ = awake_ns + heartbeat_ns_;
  return true;
}

}  // namespace lockstep::control
