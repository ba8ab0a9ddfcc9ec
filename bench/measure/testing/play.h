// Test material: the workers of a round, with literal durations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure/protocol.h"
#include "bench/measure/sample_book.h"
#include "core/base/random.h"

namespace lockstep::bench::measure {

inline constexpr std::size_t kOutboxRecords = 100'000;

// Plays the workers of one round: every iteration of case c takes base[c] ns, with noise. A batch
// costs a millisecond, or what its iterations and as many for warm-up and checks take.
inline double Play(const Round& round, const std::vector<double>& base, double noise,
                   Random& random, SampleBook& book, bool true_costs = false) {
  Ticks now = 1'000'000;
  double seconds = 0;
  for (const Batch& batch : round.batches) {
    const double took = 2 * base[batch.case_index] * (batch.warmup + batch.iterations);
    const Ticks cost = true_costs ? static_cast<Ticks>(took) : 1'000'000;
    seconds += static_cast<double>(cost) * 1e-9;
    for (int rank = 0; rank < 2; ++rank) {
      std::string bytes;
      for (std::uint32_t i = 0; i < batch.iterations; ++i) {
        const double ns = base[batch.case_index] * (1 + noise * random.Uniform());
        const Ticks entry = now + i * 1'000'000;
        AppendTo(bytes, SampleRecord{batch.case_index, round.number, entry,
                                     entry + static_cast<Ticks>(ns)});
      }
      AppendTo(bytes, BatchRecord{batch.case_index, round.number, cost, 4, 0,
                                  batch.warmup + batch.iterations});
      book.Add(rank, bytes);
    }
  }
  return seconds;
}

}  // namespace lockstep::bench::measure
