// The tables of a scenario that have files of their own.
#pragma once

#include <string>
#include <string_view>

#include "core/base/toml_fields.h"
#include "stress/faults/fault_registry.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {

// One of the [[fault]] tables, for a scenario of `ranks`; `path` is its name in mistakes.
FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes);

// Of a fault of a link between two ranks, or of the network between the hosts of two ranks: into
// FaultSpec::ranks the rank `from`, into amounts: "to" (a rank; absent: all others), "one_way"
// (0: both directions), "delay", "jitter" (seconds), "loss", "share" (probabilities), "rate" (bytes
// a second), "port" (absent: any), "refuse".
void ReadLink(TomlFields& fields, const stress::faults::FaultInfo& info, FaultSpec& fault,
              int ranks);

// Reads `recovery` of the file: mode = "shrink" | "restart", abort_deadline = "2s". The workload
// and the faults have been read: a mistake is a workload that cannot go on from an iteration, a
// fault of a recovery without one, or an expectation of one.
void ReadRecovery(TomlFields& root, Scenario& scenario);

inline constexpr std::string_view kAfterFinishNames[] = {"exit", "linger"};

// Reads the [workload] table by its `kind`, for `ranks` ranks. What is wrong is added to the
// mistakes.
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
