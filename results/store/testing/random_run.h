// Runs from a seed, and runs as bytes, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "results/store/run.h"

namespace lockstep::results::store {

// Any valid run: no or many cases, samples, events and findings, NaN and infinities, empty and long
// texts in UTF-8. Environment and floors are sorted, as a reader gives them.
Run RandomRun(std::uint64_t seed);

// A run with one case of that many samples.
Run RunWithSamples(std::int64_t iterations, int ranks);

// Every field of a run, doubles by their bits: two runs are equal exactly when these are.
std::string BytesOf(const Run& run);

}  // namespace lockstep::results::store
