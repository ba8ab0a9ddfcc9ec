#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

// Every kind of program has a Run of its own; a kind without one does not compile.
struct Runner {
  std::uint64_t seed;
  const RankPorts& ports;
  RankReport operator()(const scenario::ScriptProgram& program) {
    return RunScript(program, seed, ports);
  }
  RankReport operator()(const ddp::TrainingProgram& program) {
    return RunTrainingWorkload(program, seed, ports);
  }
  RankReport operator()(const scenario::LoadingProgram& program) {
    return RunLoading(program, seed, ports);
  }
  RankReport operator()(const scenario::StreamRaceProgram& program) {
    return RunStreamRace(program, seed, ports);
  }
  RankReport operator()(const scenario::GraphReplayProgram& program) {
    return RunGraphReplay(program, seed, ports);
  }
};

}  // namespace

RankReport RunWorkload(const scenario::Scenario& scenario, std::uint64_t seed,
                       const RankPorts& ports) {
  return std::visit(Runner{seed, ports}, scenario.workload);
}

}  // namespace lockstep::stress::workloads
