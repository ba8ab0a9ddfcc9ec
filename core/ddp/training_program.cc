// What a training program means, before it runs.

#include <cstddef>

#include "core/ddp/training.h"

namespace lockstep::ddp {
namespace {

template <typename T>
Status ValidatePerRank(std::string_view key, const PerRank<T>& values, int ranks) {
  if (values.values.size() == 1 || values.values.size() == static_cast<std::size_t>(ranks)) {
    return OkStatus();
  }
  return InvalidInput("{}: {} values for {} ranks; give one, or one a rank", key,
                      values.values.size(), ranks);
}

Status ValidateCounts(const TrainingProgram& program) {
  if (program.epochs < 0) return InvalidInput("epochs: less than 0; give 0 or more");
  if (program.sampler && (program.sampler->samples < 0 || program.sampler->batch < 1)) {
    return InvalidInput("sampler: samples must be at least 0 and batch at least 1");
  }
  for (const char branch : program.branch.values) {
    if (branch != 'b' && branch != 'c') return InvalidInput("branch: choose \"b\" or \"c\"");
  }
  if (program.power_sgd.rank < 1) return InvalidInput("powersgd: the rank must be at least 1");
  return OkStatus();
}

}  // namespace

Status ValidateProgram(const TrainingProgram& program, int ranks) {
  LOCKSTEP_RETURN_IF_ERROR(ValidatePerRank("inputs", program.inputs, ranks));
  LOCKSTEP_RETURN_IF_ERROR(ValidatePerRank("branch", program.branch, ranks));
  LOCKSTEP_RETURN_IF_ERROR(ValidatePerRank("compute_us", program.compute_us, ranks));
  LOCKSTEP_RETURN_IF_ERROR(ValidatePerRank("load_us", program.load_us, ranks));
  LOCKSTEP_RETURN_IF_ERROR(ValidateCounts(program));
  for (int rank = 0; rank < ranks; ++rank) {
    if (InputsOf(program, rank, ranks) >= 0) continue;
    return InvalidInput("inputs: rank {} would have {}; give 0 or more", rank,
                        InputsOf(program, rank, ranks));
  }
  if (!program.evaluation) return OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(ValidatePerRank("eval.inputs", program.evaluation->inputs, ranks));
  for (const int rank : program.evaluation->ranks) {
    if (rank >= 0 && rank < ranks) continue;
    return InvalidInput("eval.ranks: rank {} does not exist; name 0 to {}", rank, ranks - 1);
  }
  return OkStatus();
}

// DistributedSampler's number of samples a rank, in batches of which the last may be short.
std::int64_t InputsOf(const TrainingProgram& program, int rank, int ranks) {
  if (!program.sampler) {
    return program.inputs.At(rank) + rank * program.extra_inputs_per_rank;
  }
  const SamplerProgram& sampler = *program.sampler;
  const std::int64_t samples =
      sampler.drop_last ? sampler.samples / ranks : (sampler.samples + ranks - 1) / ranks;
  return (samples + sampler.batch - 1) / sampler.batch;
}

EngineOptions EngineOptionsOf(const TrainingProgram& program) {
  EngineOptions options;
  options.buckets = program.buckets;
  options.buckets.find_unused_parameters = program.find_unused_parameters;
  options.buckets.static_graph = program.static_graph;
  options.broadcast_buffers = program.broadcast_buffers;
  options.hook = program.comm_hook;
  options.power_sgd = program.power_sgd;
  options.deadline_seconds = program.deadline_seconds;
  return options;
}

}  // namespace lockstep::ddp
