// Where a trial went wrong, by its journals alone: the judge's word is compared with it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "results/store/run.h"

namespace lockstep::results::score {

// By communicator the first sequence that not all of its ranks left in order after the same call
// for the same purpose; none where all did. Ranks of the world (0) are all of the histories, those
// of another communicator the ones that called something on it. Of journals whose beginning was
// overwritten only what all of them still hold counts.
std::map<int, std::int64_t> BrokenPositions(
    const std::vector<const store::RankHistory*>& histories);

}  // namespace lockstep::results::score
