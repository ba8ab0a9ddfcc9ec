// Cases whose iteration is one collective or a sequence of them. There is a case for every size,
// bucket and sequence of buckets. Types, reductions, placements and ways to call multiply them.
#include "bench/collectives/cases.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/plan/step_fields.h"
#include "core/ddp/buckets.h"

namespace lockstep::bench::collectives {
namespace {

// The axes that all cases share: every combination is one variant.
struct Variant {
  collective::DataType type;
  collective::Reduction reduction;
  bool in_place;
  collective::Blocking blocking;
  bool graph;
};

std::vector<Variant> VariantsOf(const Axes& axes, bool graph) {
  std::vector<Variant> variants;
  const bool reduces = collective::InfoOf(axes.collective).reduces;
  for (const collective::DataType type : axes.types) {
    for (const collective::Reduction reduction : axes.reductions) {
      for (const bool in_place : axes.in_place) {
        for (const collective::Blocking blocking : axes.blocking) {
          variants.push_back({type, reduction, in_place, blocking, graph});
        }
      }
      if (!reduces) break;
    }
  }
  return variants;
}

std::string Prefix(const Axes& axes, const Variant& variant) {
  std::string name{collective::NameOf(axes.collective)};
  if (axes.collective != collective::Collective::kBarrier)
    name += fmt::format("/{}", collective::NameOf(variant.type));
  if (collective::InfoOf(axes.collective).reduces)
    name += fmt::format("/{}", collective::NameOf(variant.reduction));
  if (variant.in_place) name += "/in_place";
  if (variant.blocking == collective::Blocking::kNonblocking) name += "/nonblocking";
  if (variant.graph) name += "/cuda_graph";
  return name;
}

collective::Operation OperationOf(const Axes& axes, const Variant& variant, std::int64_t count) {
  return collective::Operation{.collective = axes.collective,
                               .type = variant.type,
                               .reduction = variant.reduction,
                               .blocking = variant.blocking,
                               .count = count,
                               .root = axes.root};
}

Status AddSweep(const Axes& axes, const Variant& variant, int world_size, plan::Plan& plan) {
  if (axes.collective == collective::Collective::kBarrier) {
    plan.cases.push_back(
        {Prefix(axes, variant), {OperationOf(axes, variant, 0)}, false, "", -1, 0});
    return OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<std::int64_t> counts,
      plan::CountsOf(axes.sizes,
                     collective::MessageBytes(OperationOf(axes, variant, 1), world_size)));
  for (const std::int64_t count : counts) {
    const collective::Operation operation = OperationOf(axes, variant, count);
    const std::string name = fmt::format("{}/{}", Prefix(axes, variant),
                                         collective::MessageBytes(operation, world_size));
    plan.cases.push_back({name, {operation}, variant.in_place, "", -1, 0});
  }
  return OkStatus();
}

void AddSequence(const Axes& axes, const Variant& variant, const BucketSequence& sequence,
                 plan::Plan& plan) {
  Variant named = variant;
  if (!axes.types_given) named.type = sequence.buckets.front().type;
  const std::string prefix =
      fmt::format("{}/{}/cap:{}", Prefix(axes, named), sequence.model, sequence.bucket_cap_mb);
  plan::PlannedCase whole{prefix + "/sequence", {}, variant.in_place,
                          sequence.model,       -1, sequence.bucket_cap_mb};
  for (std::size_t i = 0; i < sequence.buckets.size(); ++i) {
    Variant typed = variant;
    if (!axes.types_given) typed.type = sequence.buckets[i].type;
    const collective::Operation operation = OperationOf(axes, typed, sequence.buckets[i].count);
    whole.operations.push_back(operation);
    plan.cases.push_back({fmt::format("{}/bucket:{}", prefix, i),
                          {operation},
                          variant.in_place,
                          sequence.model,
                          static_cast<int>(i),
                          sequence.bucket_cap_mb});
  }
  plan.cases.push_back(std::move(whole));
}

// Operations lie side by side in the buffers, each on its own pages.
void SizeBuffers(plan::PlannedCase& planned, int world_size) {
  for (const collective::Operation& operation : planned.operations) {
    planned.send_bytes += plan::AlignedBytes(collective::SendBytes(operation, world_size));
    planned.recv_bytes += plan::AlignedBytes(collective::RecvBytes(operation, world_size));
  }
}

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

// Two cases: the state that DDP's constructor broadcasts, and the buffers of every forward pass (if
// there are any). The broadcasts are one a type and 250 MiB.
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

}  // namespace

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size) {
  // A rank alone on its GPU: NCCL copies, and how fast it does is what a GPU is compared with.
  const int fewest_ranks = spec.backend == "nccl" && axes.models.empty() ? 1 : 2;
  LOCKSTEP_ASSIGN_OR_RETURN(plan::Plan plan,
                            plan::PlanWithoutCases(spec, world_size, fewest_ranks));
  if (axes.root < 0 || axes.root >= world_size) {
    return InvalidInput("-r {}: no such rank; ranks are 0 to {}", axes.root, world_size - 1);
  }
  plan.models = axes.models;
  for (const plan::PlannedModel& model : axes.models) AddStateBroadcasts(model, plan);
  for (const Variant& variant : VariantsOf(axes, spec.nccl.graphs)) {
    if (axes.sweep) LOCKSTEP_RETURN_IF_ERROR(AddSweep(axes, variant, world_size, plan));
    for (const BucketSequence& sequence : axes.sequences) {
      AddSequence(axes, variant, sequence, plan);
    }
    LOCKSTEP_RETURN_IF_ERROR(plan::CheckNumberOfCases(plan));
  }
  for (plan::PlannedCase& planned : plan.cases) {
    if (planned.step.name.empty()) SizeBuffers(planned, world_size);
    if (spec.nccl.graphs) planned.settings = {{"cuda_graph", "true"}};
  }
  plan::SizeMemory(plan);
  return plan;
}

}  // namespace lockstep::bench::collectives
