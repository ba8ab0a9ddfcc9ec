#include "core/base/utc.h"

#include <fmt/chrono.h>

#include <ctime>

namespace lockstep {

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

}  // namespace lockstep
