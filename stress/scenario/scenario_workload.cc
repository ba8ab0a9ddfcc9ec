// The table of all kinds of workloads, each with its reader. A kind that is missing here is unknown
// to every program.
#include "stress/scenario/scenario_tables.h"

#include <array>
#include <string_view>

namespace lockstep::stress::scenario {
namespace {

using ReadKind = Workload (*)(TomlFields&, int, const ScenarioOptions&);

struct NamedWorkload {
  std::string_view name;
  ReadKind read;
};

template <auto kRead>
Workload As(TomlFields& fields, int ranks, const ScenarioOptions& options) {
  return kRead(fields, ranks, options);
}

template <collective::Collective kCollective>
Workload AsLoop(TomlFields& fields, int ranks, const ScenarioOptions&) {
  return ReadLoop(fields, ranks, kCollective);
}

constexpr NamedWorkload kWorkloadKinds[] = {
    {"ddp_training", As<ReadTraining>},
    {"script", As<ReadScript>},
    {"all_reduce_loop", AsLoop<collective::Collective::kAllReduce>},
    {"broadcast_loop", AsLoop<collective::Collective::kBroadcast>},
    {"communicator_churn", As<ReadChurn>},
    {"groups", As<ReadGroups>},
    {"graph_replay", As<ReadGraphReplay>},
    {"sharded_loading", As<ReadLoading>},
    {"stream_race", As<ReadStreamRace>},
};

}  // namespace

Workload ReadWorkload(TomlFields& fields, int ranks, const ScenarioOptions& options) {
  std::array<std::string_view, std::size(kWorkloadKinds)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kWorkloadKinds[i].name;
  if (!fields.Has("kind")) {
    fields.Wrong("kind", "missing; write kind = \"ddp_training\"");
    return Workload();
  }
  const auto kind = fields.ReadName("kind", names);
  if (!kind) return Workload();
  Workload workload = kWorkloadKinds[*kind].read(fields, ranks, options);
  fields.RejectTheRest();
  auto* const script = std::get_if<ScriptProgram>(&workload);
  if (script == nullptr || !fields.mistakes().none()) return workload;
  for (std::size_t i = 0; i < script->communicators.size(); ++i) {
    script->promised.push_back(PromisesRightData(*script, i));
  }
  return workload;
}

}  // namespace lockstep::stress::scenario
