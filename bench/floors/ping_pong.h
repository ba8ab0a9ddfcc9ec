// How long a cache line takes from one processor to another and back.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/deadline.h"

namespace lockstep::bench::floors {

// The time of a cache line there and back. Two threads call Serve and Return with the same object
// and deadline; either ends when the deadline passes, whatever the other does.
class PingPong {
 public:
  // The fastest of so many batches, in ns a round trip; NaN when none was completed.
  double Serve(Deadline deadline, int batches = 80);
  void Return(Deadline deadline);

 private:
  static constexpr std::uint32_t kOver = 0xffffffff;
  alignas(64) std::atomic<std::uint32_t> ball_ = 0;  // odd: to be returned
  alignas(64) std::uint32_t next_ = 0;               // of the server
};

}  // namespace lockstep::bench::floors
