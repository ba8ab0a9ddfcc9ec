// What the iterations of this room's cases do.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/ddp_step/models.h"
#include "bench/measure/step.h"

namespace lockstep::bench::collectives {

// One collective, or a sequence of them, on shared buffers.
std::unique_ptr<measure::Step> MakeCollectiveStep(const measure::Bench& bench,
                                                  std::uint32_t case_index);

// DDP's broadcast of a model's state: coalesced a type and 250 MiB, at most two broadcasts in
// flight.
std::unique_ptr<measure::Step> MakeStateBroadcastStep(const measure::Bench& bench,
                                                      std::uint32_t case_index,
                                                      ddp_step::ModelCache& models);

}  // namespace lockstep::bench::collectives
