#include "core/base/status.h"

namespace lockstep {

ExitCode ExitCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ExitCode::kPass;
    case StatusCode::kInvalidInput:
    case StatusCode::kUnsupported:
      return ExitCode::kUsage;
    case StatusCode::kEnvironment:
      return ExitCode::kEnvironment;
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kTerminated:
      return ExitCode::kInconclusive;
    case StatusCode::kSystemFailed:
      return ExitCode::kFailed;
  }
  return ExitCode::kInternal;
}

}  // namespace lockstep
