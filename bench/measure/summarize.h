// The numbers of one case. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "results/store/run.h"

namespace lockstep::bench::measure {

// Median and interval over rounds (with fixed iterations, over up to 20 blocks of consecutive
// iterations), tails, bandwidths, this host's floor, and what the comparison found. Without a row
// that every rank completed, all figures are NaN. `floors`: as they were before the rounds, and
// after them; none: not known. Where the book tells how the machine was in most rounds, the limit
// is the median over rounds, each by a floor of its own.
results::store::Summary Summarize(const CaseBook& book, const plan::PlannedCase& planned,
                                  const plan::Plan& plan,
                                  const std::vector<floors::HostFloors>& floors, double ns_per_tick,
                                  const std::string& stopped_by);

// Medians and intervals of the parts of a case, from their values and samples.
void SummarizeParts(const plan::PlannedCase& planned, const plan::Plan& plan,
                    results::store::CaseRecord& record);

}  // namespace lockstep::bench::measure
