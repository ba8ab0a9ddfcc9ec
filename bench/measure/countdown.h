// What a person is told of the time that is left. An estimate may be wrong, but one that grows is
// not believed again.
#pragma once

#include <algorithm>
#include <limits>

namespace lockstep::bench::measure {

class Countdown {
 public:
  // Seconds to be told, when the newest estimate is `estimated`: at most a fifth more than the
  // least that was told so far. Infinite: unknown.
  double Say(double estimated) {
    const double told = std::min(estimated, 1.2 * least_);
    least_ = std::min(least_, told);
    return told;
  }

 private:
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace lockstep::bench::measure
