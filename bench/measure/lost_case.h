// Which case a failure cost. Pure.
#ifndef LOCKSTEP_BENCH_MEASURE_LOST_CASE_H_
#define LOCKSTEP_BENCH_MEASURE_LOST_CASE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/verdict/judge.h"

namespace lockstep::bench::measure {

// The one that the culprit was in, else that of the first rank in a case. Ranks that are idle
// between rounds are in none.
std::optional<std::size_t> LostCase(const std::vector<verdict::RankEvidence>& evidence,
                                    const verdict::Judgement& judgement);

}  // namespace lockstep::bench::measure

#endif  // LOCKSTEP_BENCH_MEASURE_LOST_CASE_H_
