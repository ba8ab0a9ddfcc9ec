// The [recovery] table of a scenario.
#pragma once

#include "core/base/toml_fields.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {

// Reads `recovery` of the file: mode = "shrink" | "restart", abort_deadline = "2s". The workload
// and the faults have been read: a mistake is a workload that cannot go on from an iteration, a
// fault of a recovery without one, or an expectation of one.
void ReadRecovery(TomlFields& root, Scenario& scenario);

}  // namespace lockstep::stress::scenario
