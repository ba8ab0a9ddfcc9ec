// Whether a follower still hears of its coordinator. Pure: time and what is seen of the
// coordinator's process are given.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/control/heartbeat_monitor.h"

namespace lockstep::coordinator {

enum class Silence : std::uint8_t { kNone, kDoubtful, kLost };

// Silence of a coordinator that is seen to run is a loss only after so long: then it hangs. Its end
// closes its connection, however long it was silent.
inline constexpr double kRunningSeconds = 600;

// `now_ns`: monotonic time.
class CoordinatorWatch {
 public:
  // The agents have met: from now on it is to be heard of within the bound.
  void Begin(double lost_seconds, std::int64_t now_ns) {
    monitor_.emplace(lost_seconds, now_ns);
    heard_ns_ = 0;
    rest_seconds_ = 0;
  }
  bool begun() const { return monitor_.has_value(); }
  int wake_ms() const { return monitor_->wake_ms(); }  // how long a loop may sleep at most
  // This process was stopped for so long that the coordinator must have taken it for lost.
  bool overslept() const { return monitor_ && rest_seconds_ == 0 && monitor_->overslept(); }

  // Something came of it, which also ends its rest.
  void Hear(std::int64_t now_ns) {
    if (!monitor_) return;
    heard_ns_ = monitor_->Turn(now_ns);
    rest_seconds_ = 0;
  }
  // It said that it does something now in which it says nothing, for so long at most.
  void Rest(double seconds) { rest_seconds_ = seconds; }

  // To be asked at every turn of the loop, after all that has come was heard: a listener that gets
  // no processor hears late. `runs`: whether its process is seen to run, asked only in doubt.
  Silence Look(std::int64_t now_ns, const std::function<bool()>& runs) {
    if (!monitor_) return Silence::kNone;
    const std::int64_t awake_ns = monitor_->Turn(now_ns);
    const auto silent_for = [&](double seconds) {
      return static_cast<double>(awake_ns - heard_ns_) > seconds * 1e9;
    };
    if (!silent_for(0.5 * monitor_->lost_seconds())) return Silence::kNone;
    const bool late = monitor_->IsLost(heard_ns_, awake_ns) && silent_for(rest_seconds_);
    const bool lost = late && (silent_for(kRunningSeconds) || !runs());
    return lost ? Silence::kLost : Silence::kDoubtful;
  }

 private:
  std::optional<control::HeartbeatMonitor> monitor_;
  std::int64_t heard_ns_ = 0;  // awake time (HeartbeatMonitor) of its newest frame
  double rest_seconds_ = 0;    // 0: it does not rest
};

}  // namespace lockstep::coordinator
