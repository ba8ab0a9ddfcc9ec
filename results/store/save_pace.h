// How often a run is saved while it lasts: what can be lost is small, and so is what it costs.
#pragma once

#include <algorithm>
#include <ctime>

#include "core/base/deadline.h"

namespace lockstep::results::store {

class SavePace {
 public:
  // `share`: of a processor's time, that saving may take.
  explicit SavePace(double share) : share_(share) {}

  // Calls `save` if it is time for it: every few seconds, or less often where that takes long.
  template <typename Save>
  void Call(Save&& save) {
    if (!due_.Passed()) return;
    const std::clock_t before = std::clock();
    save();
    const double cost = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    due_ = Deadline::AfterSeconds(std::max(kSeconds, cost / share_));
  }

 private:
  static constexpr double kSeconds = 5;

  double share_;
  Deadline due_ = Deadline::AfterSeconds(kSeconds);
};

}  // namespace lockstep::results::store
