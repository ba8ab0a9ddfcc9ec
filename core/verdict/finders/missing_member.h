// Communicators that not all ranks of their parent make.
#ifndef LOCKSTEP_CORE_VERDICT_FINDERS_MISSING_MEMBER_H_
#define LOCKSTEP_CORE_VERDICT_FINDERS_MISSING_MEMBER_H_

#include <optional>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// Why it came to what `general` (the first finding) says, if that is the making of a communicator
// in which not all ranks of its parent take part: init_failure, as certain as `general` is. The
// culprits are who did not take part, unless those are most.
std::optional<Finding> ExplainMaking(const Situation& situation, const Finding& general);

}  // namespace lockstep::verdict::finders

#endif  // LOCKSTEP_CORE_VERDICT_FINDERS_MISSING_MEMBER_H_
