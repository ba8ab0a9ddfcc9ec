// What of the catalogue this launch can run.
#pragma once

#include "core/base/status.h"
#include "core/control/context.h"
#include "stress/cases/catalogue.h"
#include "stress/harness/options.h"

namespace lockstep::stress::harness {

// On real ranks. What the backend or the hosts cannot show is left out; an error when nothing else
// was asked for.
Result<cases::Selection> SelectForLaunch(const StressOptions& options,
                                         const control::LaunchContext& context);
// The same in virtual time: backend sim.
Result<cases::Selection> SelectForSimulation(const StressOptions& options);

bool HasLinkFaults(const cases::StressCase& stress_case);

}  // namespace lockstep::stress::harness
