// Collectives that become a CUDA graph: the `graph_replay` workload.
#ifndef LOCKSTEP_STRESS_SCENARIO_GRAPH_REPLAY_H_
#define LOCKSTEP_STRESS_SCENARIO_GRAPH_REPLAY_H_

#include <cstdint>
#include <vector>

#include "core/collective/collective.h"
#include "core/ddp/training.h"

namespace lockstep::stress::scenario {

// The first round calls the operations, so that the library connects; the second one captures them
// and replays the graph, as all later ones do.
struct GraphReplayProgram {
  std::vector<collective::Operation> operations;  // of a round
  std::int64_t rounds = 20;
  ddp::AfterFinish after_finish = ddp::AfterFinish::kExit;
};

}  // namespace lockstep::stress::scenario

#endif  // LOCKSTEP_STRESS_SCENARIO_GRAPH_REPLAY_H_
