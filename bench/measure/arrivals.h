// Arrival skew apart from transfer time. Pure.
#pragma once

#include <optional>

#include "results/store/run.h"

namespace lockstep::bench::measure {

// Of samples on one clock, whose stamps on two ranks are off by at most `clock_error_ns`. Nothing
// for one rank, or when no iteration was completed by all ranks. `by_mean`: CountsByMean of its
// case (visit_figure.h); then visits stand for iterations, with their means.
std::optional<results::store::Arrivals> ArrivalsOf(const results::store::Samples& samples,
                                                   double clock_error_ns, bool by_mean);

}  // namespace lockstep::bench::measure
