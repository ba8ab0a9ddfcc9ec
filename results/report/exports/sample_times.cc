#include "results/report/exports/sample_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace lockstep::results::report::exports {

std::vector<double> SlowestNs(const store::Samples& samples) {
  std::vector<double> slowest;
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  for (std::size_t row = 0; row < samples.round.size(); ++row) {
    std::int64_t longest = 0;
    bool complete = true;
    for (std::size_t k = row * ranks; k < (row + 1) * ranks; ++k) {
      complete = complete && samples.exit_ns[k] != store::Samples::kNoTime;
      longest = std::max(longest, samples.exit_ns[k] - samples.entry_ns[k]);
    }
    if (complete) slowest.push_back(static_cast<double>(longest));
  }
  return slowest;
}

double MeasuredNs(const store::Samples& samples) {
  const std::vector<double> slowest = SlowestNs(samples);
  return std::accumulate(slowest.begin(), slowest.end(), 0.0);
}

}  // namespace lockstep::results::report::exports
