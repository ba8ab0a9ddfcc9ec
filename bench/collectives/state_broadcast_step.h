// A case whose iteration is DDP's broadcast of a model's state: coalesced a type and 250 MiB, at
// most two broadcasts in flight.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/ddp_step/model_cache.h"
#include "bench/measure/step.h"

namespace lockstep::bench::collectives {

std::unique_ptr<measure::Step> MakeStateBroadcastStep(const measure::Bench& bench,
                                                      std::uint32_t case_index,
                                                      ddp_step::ModelCache& models);

}  // namespace lockstep::bench::collectives
