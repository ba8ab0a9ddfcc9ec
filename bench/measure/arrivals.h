// Arrival skew apart from transfer time. Pure.
#pragma once

#include <optional>

#include "results/store/run.h"

namespace lockstep::bench::measure {

// Of samples on one clock, whose stamps on two ranks are off by at most `clock_error_ns`. Nothing
// for one rank, or when no iteration was completed by all ranks.
std::optional<results::store::Arrivals> ArrivalsOf(const results::store::Samples& samples,
                                                   double clock_error_ns);

}  // namespace lockstep::bench::measure
