#include "stress/workloads/rank_program.h"

namespace lockstep {
namespace {

// Every kind of program has a Run of its own; a kind without one does not compile.
struct Runner {
  std::uint64_t seed;
  const RankPorts& ports;
  RankReport operator()(const ScriptProgram& program) { return RunScript(program, seed, ports); }
  RankReport operator()(const TrainingProgram& program) {
    return RunTrainingWorkload(program, seed, ports);
  }
  RankReport operator()(const LoadingProgram& program) { return RunLoading(program, seed, ports); }
  RankReport operator()(const StreamRaceProgram& program) {
    return RunStreamRace(program, seed, ports);
  }
  RankReport operator()(const GraphReplayProgram& program) {
    return RunGraphReplay(program, seed, ports);
  }
};

}  // namespace

RankReport RunWorkload(const Scenario& scenario, std::uint64_t seed, const RankPorts& ports) {
  return std::visit(Runner{seed, ports}, scenario.workload);
}

}  // namespace lockstep
