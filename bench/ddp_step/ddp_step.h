// A case whose iteration is a training step under DistributedDataParallel.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/ddp_step/models.h"
#include "bench/measure/step.h"

namespace lockstep::bench::ddp_step {

std::unique_ptr<measure::Step> MakeDdpStep(const measure::Bench& bench, std::uint32_t case_index,
                                           ModelCache& models);

}  // namespace lockstep::bench::ddp_step
