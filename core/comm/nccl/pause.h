// Between two questions to something that answers in its own time.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace lockstep::comm::nccl {

// Soon at first; the longer the wait, the longer the naps, up to 1.6 ms: who waits for seconds
// leaves the processor to those it waits for.
class Pause {
 public:
  void operator()() {
    if (++times_ <= kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap * (1 << std::min((times_ - kYields) / kNapsOfALength, 5)));
    }
  }

 private:
  static constexpr int kYields = 200;
  static constexpr int kNapsOfALength = 64;
  static constexpr std::chrono::microseconds kNap{50};
  int times_ = 0;
};

}  // namespace lockstep::comm::nccl
