// A case whose iteration is a batch of a sharded dataset on every rank, then a barrier: what uneven
// loading costs the ranks that are done.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/measure/step.h"

namespace lockstep::bench::loading {

std::unique_ptr<measure::Step> MakeLoadStep(const measure::Bench& bench, std::uint32_t case_index);

}  // namespace lockstep::bench::loading
