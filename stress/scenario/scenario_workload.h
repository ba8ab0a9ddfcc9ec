// The [workload] table of a scenario.
#pragma once

#include "core/base/toml_fields.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {

// Reads the table by its `kind`, for `ranks` ranks. What is wrong is added to the mistakes.
Workload ReadWorkload(TomlFields& fields, int ranks, const ScenarioOptions& options);

// kind = "ddp_training" (scenario_training.cc).
ddp::TrainingProgram ReadTraining(TomlFields& fields, int ranks, const ScenarioOptions& options);

// scenario_script.cc: kind = "script"; "all_reduce_loop" and "broadcast_loop" (sizes, rounds, type,
// load_us, compute_us); "communicator_churn" (sizes, rounds, type); "groups" (communicators, order,
// rank.N, create.N, collective, sizes, type, rounds, streams).
ScriptProgram ReadScript(TomlFields& fields, int ranks, const ScenarioOptions& options);
ScriptProgram ReadLoop(TomlFields& fields, int ranks, collective::Collective collective);
ScriptProgram ReadChurn(TomlFields& fields, int ranks, const ScenarioOptions& options);
ScriptProgram ReadGroups(TomlFields& fields, int ranks, const ScenarioOptions& options);
// kind = "graph_replay" (collective, sizes, rounds, type).
GraphReplayProgram ReadGraphReplay(TomlFields& fields, int ranks, const ScenarioOptions& options);

// scenario_lab.cc: kind = "sharded_loading" and "stream_race".
LoadingProgram ReadLoading(TomlFields& fields, int ranks, const ScenarioOptions& options);
StreamRaceProgram ReadStreamRace(TomlFields& fields, int ranks, const ScenarioOptions& options);

}  // namespace lockstep::stress::scenario
