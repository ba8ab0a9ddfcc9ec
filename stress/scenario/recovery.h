// What ranks do after one of them was lost: give the communicator up and make another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::stress::scenario {

struct RecoveryPlan {
  enum class Mode : std::uint8_t {
    kShrink,   // the survivors go on without those that are lost
    kRestart,  // those that are lost are started anew
  };
  Mode mode = Mode::kShrink;
  double abort_deadline_seconds = 5;     // an Abort() that takes longer hangs
  double connect_deadline_seconds = 15;  // for all ranks to be connected, at first and anew
};

// What became of it.
enum class RecoveryOutcome : std::uint8_t {
  kResumed,
  kAbortHung,
  kRebuildFailed,
  kCutShort,  // the case ended before
};
inline constexpr std::string_view kRecoveryOutcomes[] = {"resumed", "abort_hung", "rebuild_failed",
                                                         "cut_short"};

inline std::string_view NameOf(RecoveryPlan::Mode mode) {
  return mode == RecoveryPlan::Mode::kShrink ? "shrink" : "restart";
}
inline std::string_view NameOf(RecoveryOutcome outcome) {
  return kRecoveryOutcomes[static_cast<std::size_t>(outcome)];
}

}  // namespace lockstep::stress::scenario
