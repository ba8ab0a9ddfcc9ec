// Collectives that become a CUDA graph: the `graph_replay` workload.
#ifndef LOCKSTEP_CORE_PLAN_GRAPH_REPLAY_H_
#define LOCKSTEP_CORE_PLAN_GRAPH_REPLAY_H_

#include <cstdint>
#include <vector>

#include "core/collective/collective.h"
#include "core/ddp/training.h"

namespace lockstep {

// The first round calls the operations, so that the library connects; the second one captures them
// and replays the graph, as all later ones do.
struct GraphReplayProgram {
  std::vector<Operation> operations;  // of a round
  std::int64_t rounds = 20;
  AfterFinish after_finish = AfterFinish::kExit;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_PLAN_GRAPH_REPLAY_H_
