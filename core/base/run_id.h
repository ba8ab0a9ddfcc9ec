// What tells a run from all others.
#pragma once

#include <string>

namespace lockstep {

// Eight hexadecimal digits, drawn anew by each call.
std::string NewRunId();

}  // namespace lockstep
