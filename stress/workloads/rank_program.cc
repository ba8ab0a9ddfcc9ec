#include "stress/workloads/rank_program.h"

namespace lockstep {

RankReport RunWorkload(const Scenario& scenario, std::uint64_t seed, const RankPorts& ports) {
  if (const auto* script = std::get_if<ScriptProgram>(&scenario.workload)) {
    return RunScript(*script, seed, ports);
  }
  return RunTrainingWorkload(std::get<TrainingProgram>(scenario.workload), seed, ports);
}

}  // namespace lockstep
