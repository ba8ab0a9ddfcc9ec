// How long a launcher lets those live that it has told to end.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace lockstep::coordinator {

// Open MPI tells its ranks what it was told: seconds between SIGTERM and SIGKILL, 1 by default.
inline double KillSeconds() {
  const char* const text = std::getenv("OMPI_MCA_odls_base_sigkill_timeout");
  const double seconds = text == nullptr ? 1 : std::strtod(text, nullptr);
  return std::clamp(seconds, 0.1, 60.0);
}

}  // namespace lockstep::coordinator
