#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "bench/plan/expand_steps.h"
#include "bench/plan/plan.h"
#include "core/base/units.h"

namespace lockstep::bench::plan {
namespace {

// The axes that all cases share: every combination is one variant.
struct Variant {
  collective::DataType type;
  collective::Reduction reduction;
  bool in_place;
  collective::Blocking blocking;
};

std::vector<Variant> VariantsOf(const BenchSpec& spec) {
  std::vector<Variant> variants;
  const bool reduces = collective::InfoOf(spec.collective).reduces;
  for (const collective::DataType type : spec.types) {
    for (const collective::Reduction reduction : spec.reductions) {
      for (const bool in_place : spec.in_place) {
        for (const collective::Blocking blocking : spec.blocking) {
          variants.push_back({type, reduction, in_place, blocking});
        }
      }
      if (!reduces) break;
    }
  }
  return variants;
}

std::string Prefix(const BenchSpec& spec, const Variant& variant) {
  std::string name{collective::NameOf(spec.collective)};
  if (spec.collective != collective::Collective::kBarrier)
    name += fmt::format("/{}", collective::NameOf(variant.type));
  if (collective::InfoOf(spec.collective).reduces)
    name += fmt::format("/{}", collective::NameOf(variant.reduction));
  if (variant.in_place) name += "/in_place";
  if (variant.blocking == collective::Blocking::kNonblocking) name += "/nonblocking";
  if (spec.cuda_graph) name += "/cuda_graph";
  return name;
}

collective::Operation OperationOf(const BenchSpec& spec, const Variant& variant,
                                  std::int64_t count) {
  collective::Operation operation;
  operation.collective = spec.collective;
  operation.type = variant.type;
  operation.reduction = variant.reduction;
  operation.blocking = variant.blocking;
  operation.count = count;
  operation.root = spec.root;
  return operation;
}

Status CheckSweep(const BenchSpec& spec) {
  if (spec.begin_bytes <= 0) {
    return InvalidInput(fmt::format("-b {}: the smallest size must be positive", spec.begin_bytes));
  }
  if (spec.begin_bytes > spec.end_bytes) {
    return InvalidInput(fmt::format("-b {} is larger than -e {}: nothing to measure; swap them",
                                    FormatBytes(spec.begin_bytes), FormatBytes(spec.end_bytes)));
  }
  if (spec.step_bytes == 0 && spec.factor <= 1.0 && spec.begin_bytes != spec.end_bytes) {
    return InvalidInput(fmt::format(
        "-f {}: the factor must be larger than 1, or give a step with -i", spec.factor));
  }
  return OkStatus();
}

// The message sizes of a sweep, each a whole number of elements; duplicates that rounding makes
// are dropped.
Result<std::vector<std::int64_t>> SweepCounts(const BenchSpec& spec, collective::DataType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSweep(spec));
  std::vector<std::int64_t> counts;
  double bytes = static_cast<double>(spec.begin_bytes);
  while (bytes <= static_cast<double>(spec.end_bytes)) {
    const std::int64_t count = static_cast<std::int64_t>(bytes) / collective::SizeOf(type);
    if (count > 0 && (counts.empty() || counts.back() != count)) counts.push_back(count);
    if (counts.size() > kMaxCases) break;
    bytes =
        spec.step_bytes > 0 ? bytes + static_cast<double>(spec.step_bytes) : bytes * spec.factor;
    if (spec.begin_bytes == spec.end_bytes) break;
  }
  if (counts.empty()) {
    return InvalidInput(fmt::format("-e {} is smaller than one element of type {} ({} bytes)",
                                    spec.end_bytes, collective::NameOf(type),
                                    collective::SizeOf(type)));
  }
  return counts;
}

Status AddSweep(const BenchSpec& spec, const Variant& variant, int world_size, Plan& plan) {
  if (spec.collective == collective::Collective::kBarrier) {
    plan.cases.push_back(
        {Prefix(spec, variant), {OperationOf(spec, variant, 0)}, false, "", -1, 0});
    return OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::int64_t> counts,
                            SweepCounts(spec, variant.type));
  for (const std::int64_t count : counts) {
    const collective::Operation operation = OperationOf(spec, variant, count);
    const std::string name = fmt::format("{}/{}", Prefix(spec, variant),
                                         collective::MessageBytes(operation, world_size));
    plan.cases.push_back({name, {operation}, variant.in_place, "", -1, 0});
  }
  return OkStatus();
}

void AddSequence(const BenchSpec& spec, const Variant& variant, const BucketSequence& sequence,
                 Plan& plan) {
  Variant named = variant;
  if (!spec.types_given) named.type = sequence.buckets.front().type;
  const std::string prefix =
      fmt::format("{}/{}/cap:{}", Prefix(spec, named), sequence.model, sequence.bucket_cap_mb);
  PlannedCase whole{prefix + "/sequence", {}, variant.in_place,
                    sequence.model,       -1, sequence.bucket_cap_mb};
  for (std::size_t i = 0; i < sequence.buckets.size(); ++i) {
    Variant typed = variant;
    if (!spec.types_given) typed.type = sequence.buckets[i].type;
    const collective::Operation operation = OperationOf(spec, typed, sequence.buckets[i].count);
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

Status CheckRanks(const BenchSpec& spec, int world_size, int fewest) {
  if (world_size < fewest) {
    return InvalidInput(
        fmt::format("{} rank: a collective needs at least 2; start it with mpirun -np 2 (or more)",
                    world_size));
  }
  if (spec.root < 0 || spec.root >= world_size) {
    return InvalidInput(
        fmt::format("-r {}: no such rank; ranks are 0 to {}", spec.root, world_size - 1));
  }
  return OkStatus();
}

Status CheckCounts(const BenchSpec& spec) {
  if (spec.iterations && *spec.iterations < 1) {
    return InvalidInput(fmt::format("-n {}: at least one iteration is needed", *spec.iterations));
  }
  if (spec.warmup && *spec.warmup < 0) {
    return InvalidInput(
        fmt::format("-w {}: a count of warm-up iterations is not negative", *spec.warmup));
  }
  if (!(spec.precision > 0) || spec.precision >= 1) {
    return InvalidInput(fmt::format(
        "--precision {}: give the half width of the interval as a fraction, such as 0.05",
        spec.precision));
  }
  if (!(spec.drift >= 0) || spec.drift >= 1) {
    return InvalidInput(fmt::format(
        "--drift {}: give a relative half width such as 0.08, or 0 for none", spec.drift));
  }
  if (!(spec.deadline_seconds > 0)) {
    return InvalidInput(fmt::format("-T {}: the deadline must be positive", spec.deadline_seconds));
  }
  if (spec.time_budget_seconds && !(*spec.time_budget_seconds > 0)) {
    return InvalidInput(
        fmt::format("--time-budget {}: must be positive", *spec.time_budget_seconds));
  }
  return OkStatus();
}

// Buffers hold the operations of the largest case side by side, each on its own cache lines.
void SizeBuffers(Plan& plan) {
  for (const PlannedCase& planned : plan.cases) {
    if (const auto* links = std::get_if<LinkExchange>(&planned.step)) {
      const auto blocks = std::max<std::int64_t>(1, std::ssize(links->everyone));
      const std::int64_t small = AlignedBytes(kPingBytes);
      plan.send_buffer_bytes = std::max(plan.send_buffer_bytes, AlignedBytes(links->bytes) + small);
      plan.recv_buffer_bytes =
          std::max(plan.recv_buffer_bytes, blocks * AlignedBytes(links->bytes) + small);
    }
    if (!std::holds_alternative<CollectiveCalls>(planned.step)) continue;
    std::int64_t send = 0;
    std::int64_t recv = 0;
    for (const collective::Operation& operation : planned.operations) {
      send += AlignedBytes(collective::SendBytes(operation, plan.world_size));
      recv += AlignedBytes(collective::RecvBytes(operation, plan.world_size));
    }
    plan.send_buffer_bytes = std::max(plan.send_buffer_bytes, send);
    plan.recv_buffer_bytes = std::max(plan.recv_buffer_bytes, recv);
  }
}

Result<Plan> PlanFor(const BenchSpec& spec, int world_size, int fewest_ranks) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRanks(spec, world_size, fewest_ranks));
  LOCKSTEP_RETURN_IF_ERROR(CheckCounts(spec));
  Plan plan;
  plan.world_size = world_size;
  plan.backend = spec.backend;
  plan.iterations = spec.iterations;
  plan.warmup = spec.warmup.value_or(5);
  plan.precision = spec.precision;
  plan.drift = spec.drift;
  plan.time_budget_seconds = spec.time_budget_seconds;
  plan.check = spec.check;
  plan.deadline_seconds = spec.deadline_seconds;
  plan.seed = spec.seed;
  return plan;
}

}  // namespace

std::int64_t AlignedBytes(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

std::int64_t BytesOf(const PlannedCase& planned, int world_size) {
  std::int64_t bytes = 0;
  for (const collective::Operation& operation : planned.operations)
    bytes += collective::MessageBytes(operation, world_size);
  return bytes;
}

Result<Plan> PlanWithoutCases(const BenchSpec& spec, int world_size) {
  return PlanFor(spec, world_size, /*fewest_ranks=*/2);
}

Result<Plan> ExpandPlan(const BenchSpec& spec, int world_size) {
  // A rank alone on its GPU: NCCL copies, and how fast it does is what a GPU is compared with.
  const int fewest_ranks = spec.backend == "nccl" && spec.models.empty() ? 1 : 2;
  LOCKSTEP_ASSIGN_OR_RETURN(Plan plan, PlanFor(spec, world_size, fewest_ranks));
  plan.models = spec.models;
  for (const PlannedModel& model : spec.models) AddStateBroadcasts(model, plan);
  for (const Variant& variant : VariantsOf(spec)) {
    if (spec.sweep) LOCKSTEP_RETURN_IF_ERROR(AddSweep(spec, variant, world_size, plan));
    for (const BucketSequence& sequence : spec.sequences) {
      AddSequence(spec, variant, sequence, plan);
    }
    if (plan.cases.size() > kMaxCases) {
      return InvalidInput(fmt::format(
          "these sizes and options make more than {} cases; use a larger step (-i) or factor (-f)",
          kMaxCases));
    }
  }
  if (spec.cuda_graph) {
    for (PlannedCase& planned : plan.cases) planned.settings = {{"cuda_graph", "true"}};
  }
  SizeBuffers(plan);
  SizeSteps(plan);
  return plan;
}

Plan Select(const Plan& plan, const std::vector<std::size_t>& indices) {
  Plan selected = plan;
  selected.cases.clear();
  selected.send_buffer_bytes = 0;
  selected.recv_buffer_bytes = 0;
  for (const std::size_t index : indices) selected.cases.push_back(plan.cases[index]);
  std::erase_if(selected.models, [&](const PlannedModel& model) {
    return std::none_of(selected.cases.begin(), selected.cases.end(),
                        [&](const PlannedCase& planned) { return planned.model == model.name; });
  });
  SizeBuffers(selected);
  SizeSteps(selected);
  return selected;
}

bool CommunicatesOnThreads(const Plan& plan) {
  return std::any_of(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& planned) {
    return std::holds_alternative<DdpStep>(planned.step) ||
           std::holds_alternative<StateBroadcast>(planned.step);
  });
}

}  // namespace lockstep::bench::plan
