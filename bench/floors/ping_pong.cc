#include "bench/floors/ping_pong.h"

#include <cmath>
#include <limits>

namespace lockstep::bench::floors {
namespace {

// Spins until `ready`; false when the deadline passed. The clock is read rarely: it costs a good
// part of a round trip.
template <typename Condition>
bool SpinUntil(const Condition& ready, Deadline deadline) {
  constexpr int kSpinsBetweenClocks = 4096;
  for (;;) {
    for (int spin = 0; spin < kSpinsBetweenClocks; ++spin) {
      if (ready()) return true;
    }
    if (deadline.Passed()) return false;
  }
}

}  // namespace

double PingPong::Serve(Deadline deadline) {
  // Short batches, so that some pass even where other programs often take one of the processors.
  constexpr int kBatches = 80;
  constexpr int kTrips = 30;
  double best = std::numeric_limits<double>::quiet_NaN();
  for (int batch = 0; batch < kBatches; ++batch) {
    const std::int64_t start = MonotonicNs();
    for (int trip = 0; trip < kTrips; ++trip) {
      ball_.store(++next_, std::memory_order_release);
      ++next_;
      const bool back =
          SpinUntil([this] { return ball_.load(std::memory_order_acquire) == next_; }, deadline);
      if (!back) return best;  // the other side sees the deadline itself
    }
    best = std::fmin(best, static_cast<double>(MonotonicNs() - start) / kTrips);
  }
  ball_.store(kOver, std::memory_order_release);
  return best;
}

void PingPong::Return(Deadline deadline) {
  std::uint32_t ball = 0;
  for (;;) {
    const bool come = SpinUntil(
        [&] {
          ball = ball_.load(std::memory_order_acquire);
          return ball % 2 == 1;
        },
        deadline);
    if (!come || ball == kOver) return;
    ball_.store(ball + 1, std::memory_order_release);
  }
}

}  // namespace lockstep::bench::floors
