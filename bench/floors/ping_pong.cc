// Two threads pass a number to and fro. Both look at the clock now and then, so neither waits for a
// thread that never comes.
#include "bench/floors/ping_pong.h"

#include <cmath>
#include <limits>

#include "bench/floors/spin.h"

namespace lockstep::bench::floors {

double PingPong::Serve(Deadline deadline, int batches) {
  // Short batches, so that some pass even where other programs often take one of the processors.
  constexpr int kTrips = 30;
  double best = std::numeric_limits<double>::quiet_NaN();
  for (int batch = 0; batch < batches; ++batch) {
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
