// The broadcasts that a model's state becomes: DDP coalesces tensors of a type, up to 250 MiB.
#include "bench/collectives/state_broadcast.h"

#include <fmt/core.h>

#include "bench/plan/step_fields.h"
#include "core/ddp/buckets.h"

namespace lockstep::bench::collectives {
namespace {

// broadcast_bucket_size of torch.nn.parallel.DistributedDataParallel.
constexpr std::int64_t kStateBroadcastBytes = 250 * 1024 * 1024;

std::vector<collective::Operation> OperationsOf(const ddp::ModelTensors& tensors,
                                                bool constructor) {
  std::vector<ddp::Gradient> members;
  if (constructor) {
    for (const ddp::TensorInfo& info : tensors.params) members.push_back({info.numel, info.type});
  }
  for (const ddp::TensorInfo& info : tensors.buffers) members.push_back({info.numel, info.type});
  const std::int64_t limits[] = {kStateBroadcastBytes};
  std::vector<collective::Operation> operations;
  for (const ddp::Bucket& bucket : ddp::ComputeBucketAssignmentBySize(members, limits)) {
    operations.push_back({collective::Collective::kBroadcast, bucket.type,
                          collective::Reduction::kSum, collective::Blocking::kBlocking,
                          bucket.elements, 0});
  }
  return operations;
}

}  // namespace

void AddStateBroadcasts(const plan::PlannedModel& model, plan::Plan& plan) {
  for (const bool constructor : {true, false}) {
    if (!constructor && model.tensors.buffers.empty()) continue;
    const StateBroadcast step{model.name, constructor};
    plan::PlannedCase planned{
        fmt::format("state_broadcast/{}/{}", model.name, constructor ? "constructor" : "forward"),
        OperationsOf(model.tensors, constructor),
        true,
        model.name,
        -1,
        0};
    planned.step = plan::PlanStep(step);
    planned.parts = {{"communication_ns", "ns"}, {"copies_ns", "ns"}};
    planned.settings = plan::SettingsOf(step);
    planned.side_stream = planned.host_access = true;
    plan.cases.push_back(std::move(planned));
  }
}

}  // namespace lockstep::bench::collectives
