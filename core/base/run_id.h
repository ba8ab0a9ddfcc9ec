// What tells a run from all others.
#ifndef LOCKSTEP_CORE_BASE_RUN_ID_H_
#define LOCKSTEP_CORE_BASE_RUN_ID_H_

#include <string>

namespace lockstep {

// Eight hexadecimal digits, drawn anew by each call.
std::string NewRunId();

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_BASE_RUN_ID_H_
