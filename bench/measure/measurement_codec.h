// What is known of a measurement before it is over, as bytes: the coordinator replicates them to
// those who may succeed it (Coordinator::Replicate).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bench/measure/measurement.h"

namespace lockstep::bench::measure {

// Of repetitions that are over, and of interruptions. A record has what is new since the last one,
// so that its size does not grow with the run.
std::string EncodeMeasurement(const Measurement& measurement);
std::optional<Measurement> DecodeMeasurement(std::string_view bytes);

}  // namespace lockstep::bench::measure
