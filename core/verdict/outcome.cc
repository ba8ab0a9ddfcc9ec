#include "core/verdict/outcome.h"

#include "core/base/check.h"

namespace lockstep::verdict {

std::string_view NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished:
      return "finished";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kCrashed:
      return "crashed";
    case Outcome::kKilled:
      return "killed";
    case Outcome::kStopped:
      return "stopped";
    case Outcome::kHung:
      return "hung";
    case Outcome::kCorrupt:
      return "corrupt";
  }
  LOCKSTEP_CHECK(false, "an Outcome without a name");
}

std::string_view NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kUnknown:
      return "unknown";
  }
  LOCKSTEP_CHECK(false, "a Verdict without a name");
}

ExitCode ExitCodeOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return ExitCode::kPass;
    case Verdict::kFail:
      return ExitCode::kFailed;
    case Verdict::kUnknown:
      return ExitCode::kInconclusive;
  }
  return ExitCode::kInternal;
}

}  // namespace lockstep::verdict
