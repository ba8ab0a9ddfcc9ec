// The cases of a launch, one after the other.
#pragma once

#include <functional>

#include "core/base/status.h"
#include "core/coordinator/coordinator.h"
#include "stress/harness/options.h"
#include "stress/harness/report.h"

namespace lockstep::stress::harness {

// Each verdict is replicated, so that a successor has it when the coordinator is lost. `begun` is
// called once a worker has all that its program runs on, `save` now and then. A case whose ranks
// could not be started, or lack what its program runs on, is unknown; verdicts of others stand. An
// error only if no case could be judged.
Status RunCases(coordinator::Coordinator& coordinator, const StressOptions& options,
                std::function<void()> begun, const std::function<void()>& save,
                StressOutcome& outcome);

}  // namespace lockstep::stress::harness
