// The [workload] table of a scenario.
#ifndef LOCKSTEP_CORE_PLAN_SCENARIO_WORKLOAD_H_
#define LOCKSTEP_CORE_PLAN_SCENARIO_WORKLOAD_H_

#include "core/plan/scenario.h"
#include "core/plan/toml_fields.h"

namespace lockstep {

// Reads the table by its `kind`, for `ranks` ranks. What is wrong is added to the mistakes.
Workload ReadWorkload(TomlFields& fields, int ranks, const ScenarioOptions& options);

// kind = "ddp_training" (scenario_training.cc).
TrainingProgram ReadTraining(TomlFields& fields, int ranks, const ScenarioOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_PLAN_SCENARIO_WORKLOAD_H_
