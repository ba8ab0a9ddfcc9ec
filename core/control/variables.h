// Environment variables that launchers set for their ranks.
#pragma once

#include <string>

#include "core/base/process_stat.h"
#include "core/base/status.h"

namespace lockstep::control {

inline constexpr int kMostRanks = 1 << 20;

using lockstep::VariableText;

// kInvalidInput names the variable; `remedy` ends the message.
Result<int> VariableNumber(const char* name, int least, int most, const char* remedy);

// Of two variables that this process has: `one` was set by the nearer ancestor, so it is of the
// launcher inside the other's. False where that cannot be seen.
bool IsInner(const char* one, const char* other);

}  // namespace lockstep::control
