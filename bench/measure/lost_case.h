// Which case a failure cost. Pure.
#pragma once

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
