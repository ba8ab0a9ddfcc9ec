// The time of day, for records and names of files. Intervals go by clock.h.
#pragma once

#include <string>

namespace lockstep {

std::string UtcNow();  // ISO 8601: "2026-11-21T10:44:25Z"

}  // namespace lockstep
