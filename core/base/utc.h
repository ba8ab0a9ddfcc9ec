// The time of day, for records and names of files. Intervals go by clock.h.
#ifndef LOCKSTEP_CORE_BASE_UTC_H_
#define LOCKSTEP_CORE_BASE_UTC_H_

#include <string>

namespace lockstep {

std::string UtcNow();  // ISO 8601: "2026-11-21T10:44:25Z"

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_BASE_UTC_H_
