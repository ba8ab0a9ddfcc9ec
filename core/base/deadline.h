// A point in time after which waiting ends. Every wait in Lockstep takes one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/clock.h"

namespace lockstep {

// Of a wait that something else ends.
inline constexpr double kForEverSeconds = 24 * 3600;

class Deadline {
 public:
  static Deadline AfterNs(std::int64_t ns) { return Deadline(NowNs() + ns); }
  static Deadline AfterSeconds(double seconds) {
    return AfterNs(static_cast<std::int64_t>(seconds * 1e9));
  }
  bool Passed() const { return RemainingNs() <= 0; }
  std::int64_t RemainingNs() const { return at_ns_ - NowNs(); }
  // For poll(2): rounded up so that a wait never ends early; 0 when passed.
  int RemainingMs() const {
    const std::int64_t ms = (RemainingNs() + 999'999) / 1'000'000;
    return static_cast<int>(std::clamp<std::int64_t>(ms, 0, std::numeric_limits<int>::max()));
  }
  Deadline Earlier(Deadline other) const { return Deadline(std::min(at_ns_, other.at_ns_)); }
  Deadline Later(Deadline other) const { return Deadline(std::max(at_ns_, other.at_ns_)); }

 private:
  explicit Deadline(std::int64_t at_ns) : at_ns_(at_ns) {}
  static std::int64_t NowNs() {
    const std::int64_t* virtual_now_ns = clock_internal::virtual_now_ns;
    return virtual_now_ns == nullptr ? MonotonicNs() : *virtual_now_ns;
  }
  std::int64_t at_ns_;  // CLOCK_MONOTONIC, or virtual time
};

}  // namespace lockstep
