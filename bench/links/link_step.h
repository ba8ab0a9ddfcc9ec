// A case whose iteration is an exchange of messages with a partner, or with all others at once.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/measure/step.h"

namespace lockstep::bench::links {

std::unique_ptr<measure::Step> MakeLinkStep(const measure::Bench& bench, std::uint32_t case_index);

}  // namespace lockstep::bench::links
