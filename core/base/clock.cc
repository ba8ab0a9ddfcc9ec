// The counter behind ticks is chosen once, when the program starts: the TSC where the processor
// calls it invariant. Its rate is measured against CLOCK_MONOTONIC_RAW, which nothing steers. Of 32
// reads of both clocks the tightest pair counts, because any of them may be interrupted.
#include "core/base/clock.h"

#include <cstdlib>
#include <ctime>
#include <limits>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep {
namespace {

struct ClockPair {
  Ticks ticks;
  std::int64_t ns;
  std::int64_t window_ns;  // how long the pair took to read: its uncertainty
};

// The tightest of several reads: one that was not interrupted between its parts.
ClockPair ReadPair() {
  ClockPair best{0, 0, std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < 32; ++i) {
    const std::int64_t before = ClockNs(CLOCK_MONOTONIC_RAW);
    const Ticks ticks = NowTicks();
    const std::int64_t after = ClockNs(CLOCK_MONOTONIC_RAW);
    if (after - before < best.window_ns) best = {ticks, (before + after) / 2, after - before};
  }
  return best;
}

}  // namespace

bool TscIsInvariant() {
#if defined(__x86_64__)
  unsigned int a = 0, b = 0, c = 0, d = 0;
  // Intel SDM vol. 3, 18.17.1: CPUID.80000007H:EDX[8] is the invariant TSC.
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0) return false;
  return (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

namespace clock_internal {
namespace {
// For machines whose TSC is not to be trusted, and for tests that plant a clock.
bool IsWanted() {
  const char* const wanted = std::getenv("LOCKSTEP_TICKS");
  return wanted == nullptr || std::string_view(wanted) != "clock_monotonic";
}
}  // namespace
const bool kUseTsc = TscIsInvariant() && IsWanted();
}  // namespace clock_internal

std::string TickSource() { return clock_internal::kUseTsc ? "tsc" : "clock_monotonic"; }

TickScale CalibrateTicks(int milliseconds) {
  // Virtual time does not pass meanwhile; its ticks are nanoseconds.
  if (clock_internal::virtual_now_ns != nullptr) return {.origin_ticks = NowTicks()};
  const ClockPair first = ReadPair();
  const std::int64_t least_ns = std::int64_t{milliseconds} * 1'000'000;
  ClockPair last = first;
  // Only the two ends count: between them the processor is for others.
  while (last.ns - first.ns < least_ns) {
    const std::int64_t rest_ns = least_ns - (last.ns - first.ns);
    const timespec rest{rest_ns / 1'000'000'000, rest_ns % 1'000'000'000};
    nanosleep(&rest, nullptr);
    last = ReadPair();
  }
  const double span_ns = static_cast<double>(last.ns - first.ns);
  TickScale scale;
  scale.origin_ticks = first.ticks;
  scale.ns_per_tick = span_ns / static_cast<double>(last.ticks - first.ticks);
  scale.relative_error = static_cast<double>(first.window_ns + last.window_ns) / 2.0 / span_ns;
  return scale;
}

}  // namespace lockstep
