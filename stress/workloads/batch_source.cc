// Real batches go through the loader. In virtual time decoding takes what it would cost, by worker.
#include "stress/workloads/batch_source.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "core/base/deadline.h"
#include "datasets/loader/loader.h"
#include "datasets/shards/samples.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::stress::workloads {
namespace {

constexpr int kPrefetch = 2;  // PyTorch's prefetch_factor
constexpr double kImageWeight = 4;
constexpr double kDecodeNsPerByte = 0.4;  // of a simulated pass

datasets::shards::DatasetSpec SpecOf(const scenario::LoadingProgram& program, int rank,
                                     std::uint64_t seed) {
  datasets::shards::DatasetSpec spec;
  spec.samples = program.samples.At(rank);
  spec.min_bytes = 4 * 1024;
  spec.max_bytes = 64 * 1024;
  spec.seed = seed;
  return spec;
}

datasets::sampler::SamplerOptions SamplerOf(const scenario::LoadingProgram& program, int rank,
                                            int ranks) {
  datasets::sampler::SamplerOptions sampler;
  sampler.samples = program.samples.At(rank);
  sampler.world = ranks;
  sampler.rank = rank;
  sampler.seed = static_cast<std::uint64_t>(program.seed.At(rank));
  sampler.shuffle = program.shuffle;
  sampler.drop_last = program.drop_last;
  return sampler;
}

std::vector<double> WeightsOf(const datasets::shards::DatasetSpec& spec) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < spec.samples; ++i) {
    weights.push_back(datasets::shards::KindOfSample(spec, i) ==
                              datasets::shards::SampleKind::kImage
                          ? kImageWeight
                          : 1);
  }
  return weights;
}

class FileBatches final : public BatchSource {
 public:
  explicit FileBatches(std::unique_ptr<datasets::loader::Loader> loader)
      : loader_(std::move(loader)) {}
  Status StartEpoch(std::int64_t epoch) override { return loader_->StartEpoch(epoch); }
  Result<bool> Next(std::vector<std::int64_t>& samples) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool more, loader_->Next(batch_));
    samples.clear();
    if (!more) return false;
    for (const datasets::loader::LoadedSample& sample : batch_.samples)
      samples.push_back(sample.index);
    return true;
  }

 private:
  std::unique_ptr<datasets::loader::Loader> loader_;
  datasets::loader::LoadedBatch batch_;
};

// Worker b % workers decodes batch b when it is free and at most the prefetched batches are ahead.
class ModelledBatches final : public BatchSource {
 public:
  ModelledBatches(const scenario::LoadingProgram& program, std::uint64_t seed,
                  const RankPorts& ports)
      : program_(program),
        ports_(ports),
        seed_(seed),
        rank_(ports.world.rank()),
        spec_(SpecOf(program, rank_, seed)) {}

  Status StartEpoch(std::int64_t epoch) override {
    LOCKSTEP_ASSIGN_OR_RETURN(indices_,
                              IndicesOf(program_, epoch, rank_, ports_.world.size(), seed_));
    const double now = ports_.body.SecondsSinceStart();
    free_at_.assign(static_cast<std::size_t>(std::max<std::int64_t>(1, program_.workers)), now);
    taken_at_.clear();
    begun_ = now;
    return OkStatus();
  }

  Result<bool> Next(std::vector<std::int64_t>& samples) override {
    samples.clear();
    const std::size_t number = taken_at_.size();
    const std::int64_t begin = static_cast<std::int64_t>(number) * program_.batch;
    const std::int64_t end = std::min(begin + program_.batch, indices_.size());
    if (begin >= end) return false;
    double bytes = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      samples.push_back(indices_[i]);
      bytes += static_cast<double>(datasets::shards::BytesOfSample(spec_, indices_[i]));
    }
    const double now = ports_.body.SecondsSinceStart();
    const double ready = StartOf(number, now) + bytes * program_.decode_passes *
                                                    program_.slow_down.At(rank_) *
                                                    kDecodeNsPerByte * 1e-9;
    free_at_[number % free_at_.size()] = ready;
    if (ready > now) {
      LOCKSTEP_RETURN_IF_ERROR(ports_.body.Sleep(static_cast<std::int64_t>((ready - now) * 1e9)));
    }
    taken_at_.push_back(ports_.body.SecondsSinceStart());
    return true;
  }

 private:
  double StartOf(std::size_t number, double now) const {
    if (program_.workers == 0) return now;
    const std::size_t ahead = free_at_.size() * kPrefetch;
    const double room = number < ahead ? begun_ : taken_at_[number - ahead];
    return std::max(room, free_at_[number % free_at_.size()]);
  }

  const scenario::LoadingProgram& program_;
  const RankPorts& ports_;
  const std::uint64_t seed_;
  const int rank_;
  const datasets::shards::DatasetSpec spec_;
  datasets::sampler::SampleIndices indices_;
  double begun_ = 0;
  std::vector<double> free_at_;   // of each worker, in seconds
  std::vector<double> taken_at_;  // of each batch
};

}  // namespace

Result<datasets::sampler::SampleIndices> IndicesOf(const scenario::LoadingProgram& program,
                                                   std::int64_t epoch, int rank, int ranks,
                                                   std::uint64_t seed) {
  datasets::sampler::SamplerOptions sampler = SamplerOf(program, rank, ranks);
  sampler.epoch = epoch;
  if (!program.weighted) return datasets::sampler::DistributedIndices(sampler);
  return datasets::sampler::WeightedIndices(WeightsOf(SpecOf(program, rank, seed)),
                                            datasets::sampler::SamplesPerRank(sampler),
                                            sampler.seed + static_cast<std::uint64_t>(epoch));
}

Result<std::unique_ptr<BatchSource>> OpenBatches(const scenario::LoadingProgram& program,
                                                 std::uint64_t seed, const RankPorts& ports) {
  if (ports.virtual_time) {
    return std::unique_ptr<BatchSource>(std::make_unique<ModelledBatches>(program, seed, ports));
  }
  const int rank = ports.world.rank();
  const datasets::shards::DatasetSpec spec = SpecOf(program, rank, seed);
  const std::string path =
      fmt::format("{}/lockstep-{}.h5", std::filesystem::temp_directory_path().string(), getpid());
  LOCKSTEP_RETURN_IF_ERROR(datasets::shards::MakeShardFile(path, spec).status());
  datasets::loader::LoaderOptions options;
  options.sampler = SamplerOf(program, rank, ports.world.size());
  if (program.weighted) options.weights = WeightsOf(spec);
  options.batch = program.batch;
  options.workers = static_cast<int>(program.workers);
  options.prefetch = kPrefetch;
  options.decode_passes = program.decode_passes;
  options.slow_down = program.slow_down.At(rank);
  options.deadline_seconds = kForEverSeconds;
  Result<std::unique_ptr<datasets::loader::Loader>> loader =
      datasets::loader::Loader::Open(path, options);
  unlink(path.c_str());  // what has opened it reads on, and nothing is left however the rank ends
  LOCKSTEP_RETURN_IF_ERROR(loader.status());
  return std::unique_ptr<BatchSource>(std::make_unique<FileBatches>(std::move(*loader)));
}

}  // namespace lockstep::stress::workloads
