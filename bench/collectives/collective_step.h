// A case whose iteration is one collective, or a sequence of them, on shared buffers.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/measure/step.h"

namespace lockstep::bench::collectives {

std::unique_ptr<measure::Step> MakeCollectiveStep(const measure::Bench& bench,
                                                  std::uint32_t case_index);

}  // namespace lockstep::bench::collectives
