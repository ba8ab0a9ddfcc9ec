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

Status InvalidInput(std::string message) {
  return Status(StatusCode::kInvalidInput, std::move(message));
}
Status Unsupported(std::string message) {
  return Status(StatusCode::kUnsupported, std::move(message));
}
Status EnvironmentError(std::string message) {
  return Status(StatusCode::kEnvironment, std::move(message));
}
Status DeadlineExceeded(std::string message) {
  return Status(StatusCode::kDeadlineExceeded, std::move(message));
}
Status SystemFailed(std::string message) {
  return Status(StatusCode::kSystemFailed, std::move(message));
}

Status Terminated(std::string message) {
  return Status(StatusCode::kTerminated, std::move(message));
}

}  // namespace lockstep
