// The JSON form of a status, which holds all that RAS gathered.
#pragma once

#include <optional>
#include <string_view>

#include "core/ras/status.h"

namespace lockstep::ras {

// Nothing: not that form, or cut off.
std::optional<JobStatus> ParseJson(std::string_view text);

}  // namespace lockstep::ras
