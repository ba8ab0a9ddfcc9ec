// Waiting without sleep, for threads that have a processor each. Nobody waits past a deadline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/deadline.h"

namespace lockstep::bench::floors {

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

// So many threads meet again and again, until one of them finds the deadline passed.
class SpinBarrier {
 public:
  explicit SpinBarrier(std::size_t threads) : threads_(static_cast<std::uint32_t>(threads)) {}
  bool Meet(Deadline deadline) {
    const std::uint32_t mine = arrived_.fetch_add(1, std::memory_order_acq_rel);
    const std::uint32_t all = (mine / threads_ + 1) * threads_;
    return SpinUntil([&] { return arrived_.load(std::memory_order_acquire) >= all; }, deadline);
  }
  void Reset() { arrived_ = 0; }  // while no thread is in Meet

 private:
  const std::uint32_t threads_;
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
};

}  // namespace lockstep::bench::floors
