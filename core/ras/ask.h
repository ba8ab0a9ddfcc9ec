// Asks the RAS service of a running job, as `ncclras -v` does.
#pragma once

#include <string>

#include "core/base/status.h"

namespace lockstep::ras {

inline constexpr const char* kDefaultPort = "28028";  // NCCL_RAS_ADDR

// `address`: "HOST:PORT", "[IPv6]:PORT" or "HOST". Asks for JSON, and for text where the service
// does not know JSON. kEnvironment: nobody answers there.
Result<std::string> Ask(const std::string& address);

}  // namespace lockstep::ras
