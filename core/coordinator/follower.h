// The other agents of a launch.
#pragma once

#include "core/base/status.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

// The life of every agent but rank 0's: join, obey, report, leave when dismissed. Returns the exit
// code (0 when dismissed, whatever the verdict: the coordinator's exit code speaks for the launch).
ExitCode Follow(const LaunchContext& context, const CoordinatorOptions& options);

}  // namespace lockstep::coordinator
