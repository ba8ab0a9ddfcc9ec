// The [recovery] table of a scenario.
#ifndef LOCKSTEP_CORE_PLAN_SCENARIO_RECOVERY_H_
#define LOCKSTEP_CORE_PLAN_SCENARIO_RECOVERY_H_

#include "core/plan/scenario.h"
#include "core/plan/toml_fields.h"

namespace lockstep::plan {

// Reads `recovery` of the file: mode = "shrink" | "restart", abort_deadline = "2s". The workload
// and the faults have been read: a mistake is a workload that cannot go on from an iteration, a
// fault of a recovery without one, or an expectation of one.
void ReadRecovery(TomlFields& root, Scenario& scenario);

}  // namespace lockstep::plan

#endif  // LOCKSTEP_CORE_PLAN_SCENARIO_RECOVERY_H_
