// Parts of the expansion that know models.
#ifndef LOCKSTEP_BENCH_PLAN_EXPAND_STEPS_H_
#define LOCKSTEP_BENCH_PLAN_EXPAND_STEPS_H_

#include <cstdint>
#include <vector>

#include "bench/plan/plan.h"

namespace lockstep::bench::plan {

// broadcast_bucket_size of torch.nn.parallel.DistributedDataParallel.
inline constexpr std::int64_t kStateBroadcastBytes = 250 * 1024 * 1024;

// The broadcasts, in order: one a type and 250 MiB.
std::vector<collective::Operation> StateBroadcastOperations(const ddp::ModelTensors& tensors,
                                                            bool constructor);

// Two cases: the state that DDP's constructor broadcasts, and the buffers of every forward pass (if
// there are any).
void AddStateBroadcasts(const PlannedModel& model, Plan& plan);

// What the models and cases of the plan take, into plan.memory_bytes.
void SizeSteps(Plan& plan);

}  // namespace lockstep::bench::plan

#endif  // LOCKSTEP_BENCH_PLAN_EXPAND_STEPS_H_
