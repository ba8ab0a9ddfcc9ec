// LOCKSTEP_CHECK: our own mistakes end the process, in every build, with exit code 10.
#pragma once

#include <string_view>

namespace lockstep {

// Prints `file:line: CHECK failed: condition: message` and ends the process with
// ExitCode::kInternal, without running destructors (they could hang).
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

}  // namespace lockstep

#define LOCKSTEP_CHECK(condition, message)                                \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::lockstep::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
