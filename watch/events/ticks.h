// The counter behind the stamps of events: the same in all processes of a host.
#pragma once

#include <cstdint>
#include <ctime>

namespace lockstep::watch::events {

inline std::uint64_t NowTicks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

}  // namespace lockstep::watch::events
