#include "core/verdict/outcome.h"

namespace lockstep::verdict {

std::string_view NameOf(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"finished", "failed", "crashed", "killed",
                                                "stopped",  "hung",   "corrupt"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string_view NameOf(Verdict verdict) {
  static constexpr std::string_view kNames[] = {"pass", "fail", "unknown"};
  return kNames[static_cast<std::size_t>(verdict)];
}

ExitCode ExitCodeOf(Verdict verdict) {
  static constexpr ExitCode kCodes[] = {ExitCode::kPass, ExitCode::kFailed,
                                        ExitCode::kInconclusive};
  return kCodes[static_cast<std::size_t>(verdict)];
}

}  // namespace lockstep::verdict
