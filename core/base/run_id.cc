#include "core/base/run_id.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>

#include "core/base/clock.h"
#include "core/base/random.h"

namespace lockstep {

std::string NewRunId() {
  const std::uint64_t unique = Mix64(static_cast<std::uint64_t>(MonotonicNs())) ^ NowTicks() ^
                               (static_cast<std::uint64_t>(getpid()) << 32);
  return fmt::format("{:08x}", static_cast<std::uint32_t>(Mix64(unique)));
}

}  // namespace lockstep
