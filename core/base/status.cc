#include "core/base/status.h"

namespace lockstep {

ExitCode ExitCodeOf(StatusCode code) {
  static constexpr ExitCode kCodes[] = {
      ExitCode::kPass,         ExitCode::kUsage,  ExitCode::kUsage,       ExitCode::kEnvironment,
      ExitCode::kInconclusive, ExitCode::kFailed, ExitCode::kInconclusive};  // by StatusCode
  return kCodes[static_cast<int>(code)];
}

}  // namespace lockstep
