// The mistakes of training programs.
#ifndef LOCKSTEP_CORE_VERDICT_FINDERS_TRAINING_MISTAKE_H_
#define LOCKSTEP_CORE_VERDICT_FINDERS_TRAINING_MISTAKE_H_

#include <optional>
#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// Why a training program came to what `general` (the first finding) says, if the journals show it:
// uneven_inputs, one_sided_evaluation, one_sided_unused_parameters; as certain as `general` is.
std::optional<Finding> ExplainTraining(const Situation& situation,
                                       const std::vector<Mismatch>& mismatches,
                                       const Finding& general);

}  // namespace lockstep::verdict::finders

#endif  // LOCKSTEP_CORE_VERDICT_FINDERS_TRAINING_MISTAKE_H_
