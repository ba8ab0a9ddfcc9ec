// Who is heard of. The coordinator speaks to every agent four times within the bound and each
// answers, outside of what is measured; whoever is not heard of for the bound is taken for lost.
// That is a suspicion, unlike a closed connection, which proves that a process is gone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/status.h"

namespace lockstep::control {

// LOCKSTEP_LOST_SECONDS of the coordinator's environment, 2 to 3600.
inline constexpr double kLostSeconds = 20;
Result<double> LostSecondsFrom(const char* text);

// How long until heartbeats, or a silence, are due: a rhythm for a loop that sleeps in poll(2).
class HeartbeatMonitor {
 public:
  // `now_ns`: monotonic time, as for all below.
  HeartbeatMonitor(double lost_seconds, std::int64_t now_ns);

  double lost_seconds() const { return static_cast<double>(lost_ns_) * 1e-9; }
  // To be asked at every turn of the loop: awake time.
  std::int64_t Turn(std::int64_t now_ns);
  // The others were told that this process says nothing now: up to so long after the last turn that
  // is no stop.
  void PassOver(std::int64_t now_ns, double most_seconds) {
    last_turn_ns_ = std::min(now_ns, last_turn_ns_ + static_cast<std::int64_t>(most_seconds * 1e9));
  }
  // This process was stopped for so long that the others must have taken it for lost: known by now,
  // unless it went on for as long as they wait.
  bool overslept() const { return woke_ns_ >= 0 && awake_ns_ - woke_ns_ <= lost_ns_; }
  // A heartbeat is due; counts as sent.
  bool TakeHeartbeat(std::int64_t awake_ns);
  bool IsLost(std::int64_t heard_ns, std::int64_t awake_ns) const {
    return awake_ns - heard_ns > lost_ns_;
  }
  // Two heartbeats in a row were not answered.
  bool IsOverdue(std::int64_t heard_ns, std::int64_t awake_ns) const {
    return awake_ns - heard_ns > 2 * heartbeat_ns_;
  }
  int wake_ms() const { return static_cast<int>(heartbeat_ns_ / 1'000'000) + 1; }

 private:
  std::int64_t lost_ns_;
  std::int64_t heartbeat_ns_;
  std::int64_t next_heartbeat_ns_;
  std::int64_t last_turn_ns_;
  // Time in which this process was awake, at the last turn. Who was stopped itself (job control, a
  // debugger, a suspended machine) takes nobody for lost.
  std::int64_t awake_ns_ = 0;
  std::int64_t woke_ns_ = -1;  // awake time, after the last stop that was too long
};

}  // namespace lockstep::control
