// What is known of a measurement before it is over, as bytes: the coordinator replicates them to
// those who may succeed it (Coordinator::Replicate).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bench/measure/measurement.h"

namespace lockstep::bench::measure {

// The repetitions that are over, and all interruptions.
std::string EncodeMeasurement(const Measurement& measurement);
std::optional<Measurement> DecodeMeasurement(std::string_view bytes);

}  // namespace lockstep::bench::measure
