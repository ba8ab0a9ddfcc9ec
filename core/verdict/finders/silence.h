// Ranks of which nothing but silence is known.
#ifndef LOCKSTEP_CORE_VERDICT_FINDERS_SILENCE_H_
#define LOCKSTEP_CORE_VERDICT_FINDERS_SILENCE_H_

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// rank_busy, transport_stall, init_failure, unknown: suspected, all evidence is silence beyond the
// deadline.
std::vector<Finding> FindSilence(const Situation& situation);

}  // namespace lockstep::verdict::finders

#endif  // LOCKSTEP_CORE_VERDICT_FINDERS_SILENCE_H_
