// Agents that do not answer.
#ifndef LOCKSTEP_CORE_VERDICT_FINDERS_UNANSWERED_AGENT_H_
#define LOCKSTEP_CORE_VERDICT_FINDERS_UNANSWERED_AGENT_H_

#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// unknown: agents that do not answer.
std::vector<Finding> FindLost(const Situation& situation);

}  // namespace lockstep::verdict::finders

#endif  // LOCKSTEP_CORE_VERDICT_FINDERS_UNANSWERED_AGENT_H_
