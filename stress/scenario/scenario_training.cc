// kind = "ddp_training": a training loop with DistributedDataParallel's communication.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/named_members.h"
#include "core/ddp/small_models.h"
#include "stress/scenario/scenario_tables.h"

namespace lockstep::stress::scenario {
namespace {

constexpr std::int64_t kMaxInputs = 1'000'000'000;
constexpr double kMaxUs = 1e12;
constexpr double kMaxBucketMb = 1 << 20;

// The small models are not in datasets/, so only what is known about them can be checked here.
bool IsSmall(const ddp::TrainingProgram& program) {
  const auto& names = ddp::SmallModelNames();
  return std::find(names.begin(), names.end(), program.model) != names.end();
}

void ReadTrainingSampler(TomlFields& fields, ddp::TrainingProgram& program) {
  const toml::table* table = fields.FindTable("sampler");
  if (table == nullptr) return;
  TomlFields inner(*table, fields.PathOf("sampler"), fields.mistakes());
  ddp::SamplerProgram sampler;
  if (!inner.Has("samples")) inner.Wrong("samples", "missing; write the size of the dataset");
  inner.Read("samples", sampler.samples, {0, kMaxInputs});
  inner.Read("batch", sampler.batch, {1, kMaxInputs});
  LOCKSTEP_FIELDS(inner.Read, sampler, shuffle, drop_last, set_epoch);
  std::int64_t seed = 0;
  if (inner.Read("seed", seed)) sampler.seed = static_cast<std::uint64_t>(seed);
  inner.RejectTheRest();
  for (const std::string_view other : {"inputs", "extra_inputs_per_rank"}) {
    if (fields.Has(other)) fields.Wrong(other, "inputs follow from sampler; remove one of them");
  }
  program.sampler = sampler;
}

void ReadInputs(TomlFields& fields, int ranks, ddp::TrainingProgram& program) {
  fields.Read("epochs", program.epochs, {1, 1'000'000});
  fields.ReadPerRank("inputs", ranks, program.inputs.values, {0, kMaxInputs});
  fields.Read("extra_inputs_per_rank", program.extra_inputs_per_rank, {0, kMaxInputs});
  const toml::node* inputs = fields.Find("inputs");
  if (inputs != nullptr && inputs->is_array() && fields.Has("extra_inputs_per_rank")) {
    fields.Wrong("extra_inputs_per_rank", "inputs already has a number for each rank; remove it");
  }
  ReadTrainingSampler(fields, program);
}

std::int64_t MostInputs(const ddp::TrainingProgram& program, int ranks) {
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    most = std::max(most, ddp::InputsOf(program, rank, ranks));
  }
  return most;
}

void ReadJoin(TomlFields& fields, ddp::TrainingProgram& program) {
  LOCKSTEP_FIELDS(fields.Read, program, join, join_throw, divide_by_initial_world_size);
  if (program.join) return;
  if (program.join_throw) fields.Wrong("join_throw", "needs join; write join = true");
  if (!program.divide_by_initial_world_size) {
    fields.Wrong("divide_by_initial_world_size", "false needs join; write join = true");
  }
}

void ReadBarrier(TomlFields& fields, ddp::TrainingProgram& program) {
  constexpr std::string_view kPlaces[] = {"none", "in_loop", "after_loop"};
  constexpr std::string_view kBarrierKinds[] = {"native", "all_reduce"};
  fields.ReadEnum("barrier", kPlaces, program.barrier);
  fields.ReadEnum("barrier_kind", kBarrierKinds, program.barrier_kind);
  const bool has_barrier =
      program.barrier != ddp::BarrierPlace::kNone ||
      (program.evaluation && program.evaluation->then == ddp::EvaluationProgram::Then::kBarrier);
  if (fields.Has("barrier_kind") && !has_barrier) {
    fields.Wrong("barrier_kind", "there is no barrier; write barrier = \"in_loop\" or remove it");
  }
}

void ReadMb(TomlFields& fields, std::string_view key, std::optional<std::int64_t>& bytes) {
  double mb = 0;
  if (!fields.Read(key, mb, 0, kMaxBucketMb)) return;
  bytes = static_cast<std::int64_t>(mb * 1024 * 1024);
  if (*bytes < 1) {
    fields.Wrong(key, "{} is less than a byte; write MiB, as 25.0", mb);
  }
}

void ReadPowerSgd(TomlFields& fields, ddp::TrainingProgram& program) {
  const toml::table* table = fields.FindTable("power_sgd");
  if (table == nullptr) return;
  ddp::PowerSgdOptions& options = program.power_sgd;
  TomlFields inner(*table, fields.PathOf("power_sgd"), fields.mistakes());
  inner.Read("rank", options.rank, {1, 1 << 20});
  inner.Read("start_iteration", options.start_iteration, {0, kMaxInputs});
  inner.Read("min_compression_rate", options.min_compression_rate, 0, 1e9);
  LOCKSTEP_FIELDS(inner.Read, options, error_feedback, warm_start);
  inner.RejectTheRest();
  // PyTorch raises: the buckets of the first two iterations are not those that stay.
  if ((options.error_feedback || options.warm_start) && options.start_iteration < 2) {
    inner.Wrong("start_iteration",
                "{} is too early for error_feedback and warm_start; write 2 or more, or set both "
                "to false",
                options.start_iteration);
  }
  if (program.comm_hook != ddp::CommHook::kPowerSgd) {
    fields.Wrong("power_sgd", "is for comm_hook = \"powersgd\"; write that or remove it");
  }
}

void ReadDdp(TomlFields& fields, const ScenarioOptions& options, ddp::TrainingProgram& program) {
  constexpr std::string_view kHooks[] = {"none", "all_reduce", "fp16", "bf16", "powersgd"};
  LOCKSTEP_FIELDS(fields.Read, program, broadcast_buffers, find_unused_parameters, static_graph,
                  sync_batch_norm, zero_grad);
  fields.Read("linear_rows", program.linear_rows, {1, 1024});
  program.buckets.rules = options.torch;
  ReadMb(fields, "bucket_cap_mb", program.buckets.cap_bytes);
  ReadMb(fields, "first_bucket_mb", program.buckets.first_cap_bytes);
  fields.ReadEnum("comm_hook", kHooks, program.comm_hook);
  ReadPowerSgd(fields, program);
  const bool without_batch_norm = IsSmall(program) && program.model != "bn_4_4_2";
  if (program.sync_batch_norm && without_batch_norm) {
    fields.Wrong("sync_batch_norm", "{} has no batch norm; use bn_4_4_2 or a manifest that has",
                 program.model);
  }
}

void ReadBranch(TomlFields& fields, int ranks, ddp::TrainingProgram& program) {
  std::vector<std::string> branches;
  if (!fields.ReadPerRank("branch", ranks, branches)) return;
  program.branch.values.clear();
  for (const std::string& branch : branches) {
    if (branch != "b" && branch != "c") {
      return fields.Wrong("branch", "'{}' is no branch; choose from b, c", branch);
    }
    program.branch.values.push_back(branch[0]);
  }
  if (program.model != "two_branch") {
    fields.Wrong("branch", "{} has no branches; use model = \"two_branch\"", program.model);
  }
}

void ReadNoSync(TomlFields& fields, int ranks, ddp::TrainingProgram& program) {
  const std::int64_t most = MostInputs(program, ranks);
  auto& iterations = program.no_sync_iterations;
  if (!fields.ReadList("no_sync_iterations", iterations, {0, kMaxInputs})) return;
  for (const std::int64_t iteration : iterations) {
    if (iteration < most) continue;
    return fields.Wrong("no_sync_iterations", "there is no iteration {}; the last is {}", iteration,
                        most - 1);
  }
}

// One number is of the ranks that `ranks` names, a list of all ranks.
void ReadEvaluationInputs(TomlFields& fields, int ranks, ddp::EvaluationProgram& evaluation) {
  const toml::node* inputs = fields.Find("inputs");
  const bool list = inputs != nullptr && inputs->is_array();
  fields.ReadPerRank("inputs", ranks, evaluation.inputs.values, {list ? 0 : 1, kMaxInputs});
  if (!list) return;
  if (fields.Has("ranks")) {
    fields.Wrong("inputs", "a list is of all ranks; remove ranks, write 0 for those that do not");
  }
  evaluation.ranks.clear();
}

void ReadEvaluation(TomlFields& fields, int ranks, ddp::TrainingProgram& program) {
  const toml::table* table = fields.FindTable("eval");
  if (table == nullptr) return;
  ddp::EvaluationProgram evaluation;
  TomlFields inner(*table, fields.PathOf("eval"), fields.mistakes());
  inner.Read("after_iteration", evaluation.after_iteration, {0, kMaxInputs});
  std::vector<std::int64_t> list;
  if (inner.ReadList("ranks", list, {0, ranks - 1})) {
    evaluation.ranks.assign(list.begin(), list.end());
    if (list.empty()) inner.Wrong("ranks", "an empty list; name ranks, or remove eval");
  }
  LOCKSTEP_FIELDS(inner.Read, evaluation, grad, train_mode);
  ReadEvaluationInputs(inner, ranks, evaluation);
  constexpr std::string_view kThrough[] = {"ddp", "module"};
  constexpr std::string_view kThen[] = {"train", "barrier", "end"};
  inner.ReadEnum("through", kThrough, evaluation.through);
  inner.ReadEnum("then", kThen, evaluation.then);
  inner.RejectTheRest();
  const std::int64_t most = MostInputs(program, ranks);
  if (evaluation.after_iteration >= most) {
    inner.Wrong("after_iteration", "there is no iteration {}; the last is {}",
                evaluation.after_iteration, most - 1);
  }
  program.evaluation = evaluation;
}

// { kind = "uniform", mean = …, spread = … } in microseconds.
ddp::LoadTime ReadDistribution(TomlFields& fields, const toml::table& table) {
  constexpr std::string_view kKinds[] = {"constant", "uniform", "exponential"};
  TomlFields inner(table, fields.PathOf("load_us"), fields.mistakes());
  ddp::LoadTime load;
  if (!inner.Has("kind"))
    inner.Wrong("kind", "missing; choose from constant, uniform, exponential");
  inner.ReadEnum("kind", kKinds, load.kind);
  if (!inner.Has("mean")) inner.Wrong("mean", "missing; write microseconds");
  inner.Read("mean", load.mean_us, 0, kMaxUs);
  if (inner.Read("spread", load.spread_us, 0, kMaxUs)) {
    if (load.kind != ddp::LoadTime::Kind::kUniform)
      inner.Wrong("spread", "is for kind = \"uniform\"");
    if (load.spread_us > load.mean_us) inner.Wrong("spread", "exceeds mean; no time is negative");
  }
  inner.RejectTheRest();
  return load;
}

void ReadTrainingTimes(TomlFields& fields, int ranks, ddp::TrainingProgram& program) {
  constexpr auto kMost = static_cast<std::int64_t>(kMaxUs);
  std::vector<std::int64_t> us;
  if (fields.ReadPerRank("compute_us", ranks, us, {0, kMost})) {
    program.compute_us.values.assign(us.begin(), us.end());
  }
  const toml::node* load = fields.Find("load_us");
  if (load == nullptr) return;
  program.load_us.values.clear();
  if (const toml::table* table = load->as_table()) {
    program.load_us.values.push_back(ReadDistribution(fields, *table));
  } else if (fields.ReadPerRank("load_us", ranks, us, {0, kMost})) {
    for (const std::int64_t mean : us) {
      program.load_us.values.push_back({.mean_us = static_cast<double>(mean)});
    }
  }
}

}  // namespace

ddp::TrainingProgram ReadTraining(TomlFields& fields, int ranks, const ScenarioOptions& options) {
  ddp::TrainingProgram program;
  if (fields.Read("model", program.model) && program.model.empty()) {
    fields.Wrong("model", "empty; name a model of datasets/ or a small one");
  }
  ReadInputs(fields, ranks, program);
  ReadJoin(fields, program);
  ReadDdp(fields, options, program);
  ReadBranch(fields, ranks, program);
  if (fields.mistakes().none()) {  // else the number of inputs may be wrong
    ReadNoSync(fields, ranks, program);
    ReadEvaluation(fields, ranks, program);
  } else {
    static_cast<void>(fields.Find("no_sync_iterations"));
    static_cast<void>(fields.Find("eval"));
  }
  ReadBarrier(fields, program);
  ReadTrainingTimes(fields, ranks, program);
  fields.ReadEnum("after_finish", kAfterFinishNames, program.after_finish);
  if (!fields.mistakes().none()) return program;
  const Status valid = ddp::ValidateProgram(program, ranks);
  if (!valid.ok()) fields.Wrong("kind", valid.message());
  return program;
}

}  // namespace lockstep::stress::scenario
