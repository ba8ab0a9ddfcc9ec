#include "core/control/clock_reading.h"

#include <time.h>

#include <cmath>
#include <limits>

namespace lockstep::control {
namespace {

constexpr int kReadings = 16;

std::int64_t Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

// The tightest of several: one that was not interrupted between its parts.
ClockReading ReadClock(double ns_per_tick) {
  ClockReading best;
  best.window_ns = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const std::int64_t before_ns = Now(CLOCK_MONOTONIC_RAW);
    const std::int64_t day_ns = Now(CLOCK_REALTIME);
    const Ticks ticks = NowTicks();
    const std::int64_t after_ns = Now(CLOCK_MONOTONIC_RAW);
    if (after_ns - before_ns >= best.window_ns) continue;
    best = {ticks, (before_ns + after_ns) / 2, day_ns, after_ns - before_ns, ns_per_tick};
  }
  return best;
}

void Put(Encoder& encoder, const ClockReading& reading) {
  encoder.Put(reading.ticks).Put(reading.raw_ns).Put(reading.day_ns).Put(reading.window_ns);
  encoder.Put(reading.ns_per_tick);
}

bool Get(Decoder& decoder, ClockReading& reading) {
  reading.ticks = decoder.Get<Ticks>();
  reading.raw_ns = decoder.Get<std::int64_t>();
  reading.day_ns = decoder.Get<std::int64_t>();
  reading.window_ns = decoder.Get<std::int64_t>();
  reading.ns_per_tick = decoder.Get<double>();
  return decoder.ok() && std::isfinite(reading.ns_per_tick) && reading.ns_per_tick > 0;
}

}  // namespace lockstep::control
