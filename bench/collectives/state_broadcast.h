// The state of a model as DDP broadcasts it from rank 0: what bench_broadcast --model measures.
#pragma once

#include <string>

#include "bench/plan/plan.h"

namespace lockstep::bench::collectives {

struct StateBroadcast {
  static constexpr char kName[] = "state_broadcast";
  std::string model;
  bool constructor = false;  // parameters and buffers, once; else the buffers of every forward pass

  template <typename Fields, typename S>
  static void Describe(Fields& fields, S& step) {
    fields("model", step.model);
    fields("constructor", step.constructor);
  }
};

// Two cases: the state that DDP's constructor broadcasts, and the buffers of every forward pass (if
// there are any). The broadcasts are one a type and 250 MiB.
void AddStateBroadcasts(const plan::PlannedModel& model, plan::Plan& plan);

}  // namespace lockstep::bench::collectives
