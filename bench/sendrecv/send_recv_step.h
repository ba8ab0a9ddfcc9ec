// A case whose iteration is a message to the right neighbour and one from the left.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/measure/step.h"

namespace lockstep::bench::sendrecv {

std::unique_ptr<measure::Step> MakeSendRecvStep(const measure::Bench& bench,
                                                std::uint32_t case_index);

}  // namespace lockstep::bench::sendrecv
