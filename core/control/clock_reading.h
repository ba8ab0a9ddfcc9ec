// The clocks of one host at one moment, as its agent reads them.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/clock.h"

namespace lockstep::control {

struct ClockReading {
  Ticks ticks = 0;
  std::int64_t raw_ns = 0;     // CLOCK_MONOTONIC_RAW: what its quartz takes for time
  std::int64_t day_ns = 0;     // CLOCK_REALTIME: what its people do
  std::int64_t window_ns = 0;  // in which all three were read
  double ns_per_tick = 1;      // as the agent calibrated it when it started
  static void Describe(auto& fields, auto& reading) {
    fields(reading.ticks, reading.raw_ns, reading.day_ns, reading.window_ns, reading.ns_per_tick);
    fields.Require(std::isfinite(reading.ns_per_tick) && reading.ns_per_tick > 0);
  }
};
ClockReading ReadClock(double ns_per_tick);

}  // namespace lockstep::control
