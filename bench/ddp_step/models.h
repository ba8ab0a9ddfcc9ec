// Models by name, as a plan carries them.
#pragma once

#include <string>
#include <vector>

#include "bench/plan/steps.h"
#include "core/base/status.h"

namespace lockstep::bench::ddp_step {

// The tensors of models, for steps. Errors: as of LoadManifest; a parameter that is sparse or no
// floating-point number, which no step can be made of.
Result<std::vector<plan::PlannedModel>> LoadModels(const std::vector<std::string>& names);

}  // namespace lockstep::bench::ddp_step
