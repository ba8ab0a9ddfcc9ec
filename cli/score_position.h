// Where a trial went wrong, by its journals alone: the judge's word is compared with it.
#ifndef LOCKSTEP_CLI_SCORE_POSITION_H_
#define LOCKSTEP_CLI_SCORE_POSITION_H_

#include <cstdint>
#include <map>
#include <vector>

#include "results/store/run.h"

namespace lockstep::cli {

// By communicator the first sequence that not all of its ranks left in order after the same call
// for the same purpose; none where all did. Ranks of the world (0) are all of the histories, those
// of another communicator the ones that called something on it. Of journals whose beginning was
// overwritten only what all of them still hold counts.
std::map<int, std::int64_t> BrokenPositions(
    const std::vector<const results::store::RankHistory*>& histories);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_SCORE_POSITION_H_
