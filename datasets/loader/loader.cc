// Checks the options, draws the epoch's indices from the sampler, and leaves the batches to the
// pipeline. Decoding is arithmetic over the bytes, so its cost is known and its result can be
// compared.
#include "datasets/loader/loader.h"

#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/random.h"
#include "datasets/loader/pipeline.h"

namespace lockstep::datasets::loader {
namespace {

constexpr int kMostWorkers = 256;
constexpr int kMostPrefetch = 1024;

Status Validate(const LoaderOptions& options, std::int64_t samples) {
  if (options.batch < 1 || options.batch > (std::int64_t{1} << 32)) {
    return InvalidInput("batch: {} samples; give 1 to 2^32", options.batch);
  }
  if (options.workers < 0 || options.workers > kMostWorkers) {
    return InvalidInput("workers: {}; give 0 to {}", options.workers, kMostWorkers);
  }
  if (options.prefetch < 1 || options.prefetch > kMostPrefetch) {
    return InvalidInput("prefetch: {} batches a worker; give 1 to {}", options.prefetch,
                        kMostPrefetch);
  }
  const double passes = options.decode_passes * options.slow_down;
  if (!(options.decode_passes >= 0) || !(options.slow_down >= 0) || !(passes < 1e9)) {
    return InvalidInput(
        "decode: {} passes slowed down {} times; give numbers from 0 on, together below 10^9",
        options.decode_passes, options.slow_down);
  }
  if (!(options.deadline_seconds > 0) || !(options.deadline_seconds < 1e9)) {
    return InvalidInput("deadline: {} s; give more than 0, below 10^9", options.deadline_seconds);
  }
  if (!options.weights.empty() && static_cast<std::int64_t>(options.weights.size()) != samples) {
    return InvalidInput("weights: {} for {} samples; give one a sample", options.weights.size(),
                        samples);
  }
  return OkStatus();
}

}  // namespace

std::uint64_t Decode(std::span<const std::byte> bytes, double passes) {
  std::uint64_t state = bytes.size();
  const auto run = [&](std::size_t end) {
    for (std::size_t at = 0; at + 4 <= end; at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + at, 4);
      state = Mix64(state ^ word);
    }
  };
  const double whole = std::floor(passes);
  for (double pass = 0; pass < whole; ++pass) run(bytes.size());
  run(static_cast<std::size_t>((passes - whole) * static_cast<double>(bytes.size())));
  return state;
}

Loader::Loader(std::string path, const LoaderOptions& options)
    : path_(std::move(path)), options_(options) {}

Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::Open(const std::string& path,
                                             const LoaderOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(shards::ShardFile shard, shards::ShardFile::Open(path));
  LOCKSTEP_RETURN_IF_ERROR(Validate(options, shard.samples()));
  std::unique_ptr<Loader> loader(new Loader(path, options));
  loader->options_.sampler.samples = shard.samples();
  LOCKSTEP_RETURN_IF_ERROR(sampler::Validate(loader->options_.sampler));
  loader->file_ = std::make_unique<File>(File{std::move(shard)});
  return loader;
}

Result<sampler::SampleIndices> Loader::DrawIndices(std::int64_t epoch) const {
  sampler::SamplerOptions sampler = options_.sampler;
  sampler.epoch = epoch;
  if (options_.weights.empty()) return sampler::DistributedIndices(sampler);
  return sampler::WeightedIndices(options_.weights, sampler::SamplesPerRank(sampler),
                                  sampler.seed + static_cast<std::uint64_t>(epoch));
}

Status Loader::StartEpoch(std::int64_t epoch) {
  pipeline_.reset();
  LOCKSTEP_ASSIGN_OR_RETURN(indices_, DrawIndices(epoch));
  try {
    pipeline_ = std::make_unique<Pipeline>(file_->shard, indices_, options_);
  } catch (const std::system_error& error) {
    return EnvironmentError("{}: no thread for a worker ({}); use fewer workers", path_,
                            error.what());
  }
  return OkStatus();
}

std::int64_t Loader::samples() const { return file_->shard.samples(); }
std::int64_t Loader::batches() const { return pipeline_ ? pipeline_->batches() : 0; }
const sampler::SampleIndices& Loader::indices() const { return indices_; }

Result<bool> Loader::Next(LoadedBatch& batch) {
  LOCKSTEP_CHECK(pipeline_ != nullptr, "StartEpoch comes before Next");
  if (options_.journal != nullptr) options_.journal->EnterPhase(journal::Phase::kLoad);
  Result<bool> more = pipeline_->Next(batch);
  if (options_.journal != nullptr) options_.journal->EnterPhase(options_.phase_after);
  return more;
}

}  // namespace lockstep::datasets::loader
