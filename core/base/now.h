// The time that deadlines go by, as a number, and sleeping in it: this machine's, or the virtual
// one of the calling thread (VirtualTime).
#pragma once

#include <cstdint>
#include <ctime>

#include "core/base/clock.h"

namespace lockstep {

inline std::int64_t NowNs() {
  const std::int64_t* const virtual_now_ns = clock_internal::virtual_now_ns;
  return virtual_now_ns == nullptr ? MonotonicNs() : *virtual_now_ns;
}

// At most a second. Virtual time passes only where somebody moves it: nobody sleeps in it.
inline void SleepNs(long ns) {
  if (clock_internal::virtual_now_ns != nullptr) return;
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

}  // namespace lockstep
