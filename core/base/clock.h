// Time. Stamps are raw ticks of the cheapest monotonic counter that all processes of a host share
// (the invariant TSC where there is one: 9 ns a read against 38 ns of clock_gettime);
// conversion to nanoseconds happens after the measurement.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <x86gprintrin.h>
#endif

namespace lockstep {

using Ticks = std::uint64_t;

// True when this machine's TSC is invariant (constant rate, runs in all sleep states).
bool TscIsInvariant();

// A clock of the kernel in nanoseconds.
inline std::int64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
inline std::int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }
inline double SecondsSince(std::int64_t monotonic_ns) {
  return static_cast<double>(MonotonicNs() - monotonic_ns) * 1e-9;
}

namespace clock_internal {
extern const bool kUseTsc;
// The virtual clock of the calling thread, in nanoseconds, where a simulation runs on it.
inline constinit thread_local const std::int64_t* virtual_now_ns = nullptr;
}  // namespace clock_internal

// While it lives, NowTicks (then in nanoseconds) and deadlines of the calling thread go by `now_ns`
// instead of this machine's time: code under simulation needs to know nothing of it.
class VirtualTime {
 public:
  explicit VirtualTime(const std::int64_t* now_ns)
      : outer_(std::exchange(clock_internal::virtual_now_ns, now_ns)) {}
  ~VirtualTime() { clock_internal::virtual_now_ns = outer_; }
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

 private:
  const std::int64_t* outer_;
};

// The current tick. Comparable between all processes of one host and one boot.
inline Ticks NowTicks() {
  if (clock_internal::virtual_now_ns != nullptr) [[unlikely]] {
    return static_cast<Ticks>(*clock_internal::virtual_now_ns);
  }
#if defined(__x86_64__)
  if (clock_internal::kUseTsc) [[likely]] {
    unsigned int cpu;
    // rdtscp waits for earlier instructions, so work before a stamp stays before it.
    return __rdtscp(&cpu);
  }
#endif
  return static_cast<Ticks>(MonotonicNs());
}

// Name of the counter behind NowTicks: "tsc" or "clock_monotonic".
std::string TickSource();

// How ticks of this host become nanoseconds: ns = (ticks - origin_ticks) * ns_per_tick.
// Measured against CLOCK_MONOTONIC_RAW; `relative_error` bounds the error of ns_per_tick.
struct TickScale {
  Ticks origin_ticks = 0;
  double ns_per_tick = 1.0;
  double relative_error = 0.0;

  double ToNs(Ticks ticks) const {
    return static_cast<double>(static_cast<std::int64_t>(ticks - origin_ticks)) * ns_per_tick;
  }
  double DurationNs(Ticks from, Ticks to) const {
    return static_cast<double>(static_cast<std::int64_t>(to - from)) * ns_per_tick;
  }
};

// Takes `milliseconds` to calibrate; origin_ticks is the time of the call.
TickScale CalibrateTicks(int milliseconds = 20);

}  // namespace lockstep
