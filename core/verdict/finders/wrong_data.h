// Ranks whose results a check found wrong.
#ifndef LOCKSTEP_CORE_VERDICT_FINDERS_WRONG_DATA_H_
#define LOCKSTEP_CORE_VERDICT_FINDERS_WRONG_DATA_H_

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// data_corruption: proved by a check of the results.
std::vector<Finding> FindWrongData(const Situation& situation);

}  // namespace lockstep::verdict::finders

#endif  // LOCKSTEP_CORE_VERDICT_FINDERS_WRONG_DATA_H_
