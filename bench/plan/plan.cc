// What all plans have, whatever their kind: the options of measuring, the choice of some cases, and
// the memory that cases need together.
#include "bench/plan/plan.h"

#include <algorithm>

namespace lockstep::bench::plan {
namespace {

Status CheckCounts(const BenchSpec& spec) {
  if (spec.iterations && *spec.iterations < 1) {
    return InvalidInput("-n {}: at least one iteration is needed", *spec.iterations);
  }
  if (spec.warmup < 0 || spec.warmup > 1'000'000) {
    return InvalidInput("-w {}: give 0 to 1M warm-up iterations", spec.warmup);
  }
  if (!(spec.precision > 0) || spec.precision >= 1) {
    return InvalidInput(
        "--precision {}: give the half width of the interval as a fraction, such as 0.05",
        spec.precision);
  }
  if (!(spec.drift >= 0) || spec.drift >= 1) {
    return InvalidInput("--drift {}: give a relative half width such as 0.08, or 0 for none",
                        spec.drift);
  }
  if (!(spec.deadline_seconds > 0)) {
    return InvalidInput("-T {}: the deadline must be positive", spec.deadline_seconds);
  }
  if (spec.time_budget_seconds && !(*spec.time_budget_seconds > 0)) {
    return InvalidInput("--time-budget {}: must be positive", *spec.time_budget_seconds);
  }
  return OkStatus();
}

// Parameters, gradients and buffers, which all cases of a model share as they do the buckets and
// their compressed copies; and the flat areas of a state broadcast.
std::int64_t ModelBytes(const ddp::ModelTensors& tensors) {
  return 5 * BytesOf(tensors.params) + 2 * BytesOf(tensors.buffers);
}

}  // namespace

Result<Plan> PlanWithoutCases(const BenchSpec& spec, int world_size, int fewest_ranks) {
  if (world_size < fewest_ranks) {
    return InvalidInput(
        "{} rank: a collective needs at least 2; start it with mpirun -np 2 (or more)", world_size);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckCounts(spec));
  Plan plan;
  static_cast<BenchSpec&>(plan) = spec;
  plan.world_size = world_size;
  return plan;
}

Status CheckNumberOfCases(const Plan& plan) {
  if (plan.cases.size() <= kMaxCases) return OkStatus();
  return InvalidInput(
      "these sizes and options make more than {} cases; use a larger step (-i) or factor (-f)",
      kMaxCases);
}

std::int64_t AlignedBytes(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

std::int64_t BytesOf(const PlannedCase& planned, int world_size) {
  std::int64_t bytes = 0;
  for (const collective::Operation& operation : planned.operations)
    bytes += collective::MessageBytes(operation, world_size);
  return bytes;
}

std::int64_t BytesOf(const std::vector<ddp::TensorInfo>& tensors) {
  std::int64_t bytes = 0;
  for (const ddp::TensorInfo& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

void SizeMemory(Plan& plan) {
  plan.send_buffer_bytes = plan.recv_buffer_bytes = plan.memory_bytes = 0;
  for (const PlannedModel& model : plan.models) plan.memory_bytes += ModelBytes(model.tensors);
  for (const PlannedCase& planned : plan.cases) {
    plan.send_buffer_bytes = std::max(plan.send_buffer_bytes, planned.send_bytes);
    plan.recv_buffer_bytes = std::max(plan.recv_buffer_bytes, planned.recv_bytes);
    plan.memory_bytes += planned.memory_bytes;
  }
}

Plan Select(const Plan& plan, const std::vector<std::size_t>& indices) {
  Plan selected = plan;
  selected.cases.clear();
  for (const std::size_t index : indices) selected.cases.push_back(plan.cases[index]);
  std::erase_if(selected.models, [&](const PlannedModel& model) {
    return std::none_of(selected.cases.begin(), selected.cases.end(),
                        [&](const PlannedCase& planned) { return planned.model == model.name; });
  });
  SizeMemory(selected);
  return selected;
}

bool CommunicatesOnThreads(const Plan& plan) {
  return std::ranges::any_of(plan.cases, &PlannedCase::side_stream);
}

}  // namespace lockstep::bench::plan
