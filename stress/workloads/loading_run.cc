// Loads the batches of a rank's shard, meets the others between two of them, and tells figures of
// what was loaded.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/pattern.h"
#include "datasets/loader/loader.h"
#include "datasets/sampler/sampler.h"
#include "datasets/shards/samples.h"
#include "datasets/shards/shard_file.h"
#include "stress/scenario/loading.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

namespace loader = datasets::loader;

namespace shards = datasets::shards;

// A rank's batches: from a real file through the loader, or, in virtual time, the same samples with
// the time that decoding them would take.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Status StartEpoch(std::int64_t epoch) = 0;
  // The samples of the next batch, by index; false: the epoch is over.
  virtual Result<bool> Next(std::vector<std::int64_t>& samples) = 0;
};

constexpr int kPrefetch = 2;  // PyTorch's prefetch_factor
constexpr double kImageWeight = 4;
constexpr double kDecodeNsPerByte = 0.4;  // of a simulated pass

shards::DatasetSpec SpecOf(const scenario::LoadingProgram& program, int rank, std::uint64_t seed) {
  return shards::DatasetSpec{.samples = program.samples.At(rank),
                             .min_bytes = 4 * 1024,
                             .max_bytes = 64 * 1024,
                             .seed = seed};
}

datasets::sampler::SamplerOptions SamplerOf(const scenario::LoadingProgram& program, int rank,
                                            int ranks) {
  return datasets::sampler::SamplerOptions{
      .samples = program.samples.At(rank),
      .world = ranks,
      .rank = rank,
      .seed = static_cast<std::uint64_t>(program.seed.At(rank)),
      .shuffle = program.shuffle,
      .drop_last = program.drop_last};
}

std::vector<double> WeightsOf(const shards::DatasetSpec& spec) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < spec.samples; ++i) {
    weights.push_back(shards::KindOfSample(spec, i) == shards::SampleKind::kImage ? kImageWeight
                                                                                  : 1);
  }
  return weights;
}

class FileBatches final : public BatchSource {
 public:
  explicit FileBatches(std::unique_ptr<loader::Loader> loader) : loader_(std::move(loader)) {}
  Status StartEpoch(std::int64_t epoch) override { return loader_->StartEpoch(epoch); }
  Result<bool> Next(std::vector<std::int64_t>& samples) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool more, loader_->Next(batch_));
    samples.clear();
    if (!more) return false;
    for (const loader::LoadedSample& sample : batch_.samples) samples.push_back(sample.index);
    return true;
  }

 private:
  std::unique_ptr<loader::Loader> loader_;
  loader::LoadedBatch batch_;
};

// What the rank is to load in the epoch, by PyTorch's rules.
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
      bytes += static_cast<double>(shards::BytesOfSample(spec_, indices_[i]));
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
  const shards::DatasetSpec spec_;
  datasets::sampler::SampleIndices indices_;
  double begun_ = 0;
  std::vector<double> free_at_;   // of each worker, in seconds
  std::vector<double> taken_at_;  // of each batch
};

// `ports` and `program` outlive it. The file is made for the run and has lost its name by then.
Result<std::unique_ptr<BatchSource>> OpenBatches(const scenario::LoadingProgram& program,
                                                 std::uint64_t seed, const RankPorts& ports) {
  if (ports.virtual_time) {
    return std::unique_ptr<BatchSource>(std::make_unique<ModelledBatches>(program, seed, ports));
  }
  const int rank = ports.world.rank();
  const shards::DatasetSpec spec = SpecOf(program, rank, seed);
  const std::string path =
      fmt::format("{}/lockstep-{}.h5", std::filesystem::temp_directory_path().string(), getpid());
  LOCKSTEP_RETURN_IF_ERROR(shards::MakeShardFile(path, spec).status());
  loader::LoaderOptions options;
  options.sampler = SamplerOf(program, rank, ports.world.size());
  if (program.weighted) options.weights = WeightsOf(spec);
  options.batch = program.batch;
  options.workers = static_cast<int>(program.workers);
  options.prefetch = kPrefetch;
  options.decode_passes = program.decode_passes;
  options.slow_down = program.slow_down.At(rank);
  options.deadline_seconds = kForEverSeconds;
  Result<std::unique_ptr<loader::Loader>> loader = loader::Loader::Open(path, options);
  unlink(path.c_str());  // what has opened it reads on, and nothing is left however the rank ends
  LOCKSTEP_RETURN_IF_ERROR(loader.status());
  return std::unique_ptr<BatchSource>(std::make_unique<FileBatches>(std::move(*loader)));
}

constexpr std::int64_t kAgreedElements = 16;

class LoadingRun {
 public:
  LoadingRun(const scenario::LoadingProgram& program, std::uint64_t seed, const RankPorts& ports)
      : program_(program), seed_(seed), ports_(ports) {}

  RankReport Run() {
    report_.where = "loading";
    report_.status = RunAll();
    report_.figures["distinct_samples"] = static_cast<double>(seen_.size());
    return std::move(report_);
  }

 private:
  Status RunAll() {
    ports_.recorded.EnterPhase(journal::Phase::kAllocate);
    for (const char* name : {"batches", "samples", "repeated_epochs", "load_seconds",
                             "load_seconds_max", "waited_seconds"}) {
      report_.figures[name] = 0;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(source_, OpenBatches(program_, seed_, ports_));
    LOCKSTEP_ASSIGN_OR_RETURN(sent_, ports_.device.Allocate(kAgreedElements * 4));
    LOCKSTEP_ASSIGN_OR_RETURN(received_, ports_.device.Allocate(kAgreedElements * 4));
    for (std::int64_t epoch = 0; epoch < program_.epochs; ++epoch) {
      LOCKSTEP_RETURN_IF_ERROR(ports_.gate.Reach(faults::FaultMoment::Kind::kEpoch, epoch));
      LOCKSTEP_RETURN_IF_ERROR(RunEpoch(program_.set_epoch ? epoch : 0));
    }
    return ports_.world.Await(ports_.compute, Forever());
  }

  Status RunEpoch(std::int64_t epoch) {
    LOCKSTEP_RETURN_IF_ERROR(source_->StartEpoch(epoch));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const datasets::sampler::SampleIndices expected,
        IndicesOf(program_, epoch, ports_.world.rank(), ports_.world.size(), seed_));
    std::vector<std::int64_t> order;
    std::vector<std::int64_t> batch;
    for (;;) {
      LOCKSTEP_RETURN_IF_ERROR(
          ports_.gate.Reach(faults::FaultMoment::Kind::kIteration, report_.iteration + 1));
      ports_.recorded.EnterPhase(journal::Phase::kLoad);
      const double begun = ports_.body.SecondsSinceStart();
      LOCKSTEP_ASSIGN_OR_RETURN(const bool more, source_->Next(batch));
      if (!more) break;
      ++report_.iteration;
      Loaded(ports_.body.SecondsSinceStart() - begun, batch);
      order.insert(order.end(), batch.begin(), batch.end());
      LOCKSTEP_RETURN_IF_ERROR(Agree());
    }
    Compare(order, expected);
    if (!order.empty() && order == before_) ++report_.figures["repeated_epochs"];
    before_ = std::move(order);
    return OkStatus();
  }

  void Loaded(double seconds, const std::vector<std::int64_t>& batch) {
    Figures& figures = report_.figures;
    ++figures["batches"];
    figures["samples"] += static_cast<double>(batch.size());
    figures["load_seconds"] += seconds;
    figures["load_seconds_max"] = std::max(figures["load_seconds_max"], seconds);
    seen_.insert(batch.begin(), batch.end());
  }

  // Ends the iteration as the program says.
  Status Agree() {
    if (program_.between == scenario::LoadingProgram::Between::kNone) return OkStatus();
    collective::Operation operation;
    operation.collective = collective::Collective::kBarrier;
    if (program_.between == scenario::LoadingProgram::Between::kAllReduce) {
      operation = {.collective = collective::Collective::kAllReduce, .count = kAgreedElements};
    }
    const bool check = operation.count > 0 && ports_.world.capabilities().moves_data;
    const collective::Pattern pattern(seed_, operation, ports_.world.size());
    const auto stamp = static_cast<std::uint64_t>(report_.iteration);
    if (check) {
      pattern.FillSend(sent_->data(), 0, operation.count, ports_.world.rank(), stamp);
      pattern.Poison(received_->data(), 0, operation.count);
    }
    ports_.recorded.EnterPhase(journal::Phase::kMeasure);
    ports_.recorded.AnnotateNext(
        {journal::Purpose::kStep, 0, static_cast<std::int32_t>(report_.iteration)});
    const double begun = ports_.body.SecondsSinceStart();
    LOCKSTEP_RETURN_IF_ERROR(
        ports_.world.Enqueue(operation, {sent_->data(), received_->data()}, ports_.compute));
    LOCKSTEP_RETURN_IF_ERROR(ports_.world.Await(ports_.compute, Forever()));
    report_.figures["waited_seconds"] += ports_.body.SecondsSinceStart() - begun;
    if (!check) return OkStatus();
    collective::CheckReport found;
    pattern.CheckRecv(received_->data(), 0, operation.count, ports_.world.rank(), stamp, found);
    report_.checked += found.checked;
    if (found.wrong == 0 || !report_.wrong_data.empty()) return OkStatus();
    report_.wrong_data =
        fmt::format("{} of iteration {}: {} of {} elements are wrong",
                    collective::Describe(operation), report_.iteration, found.wrong, found.checked);
    return OkStatus();
  }

  void Compare(const std::vector<std::int64_t>& order,
               const datasets::sampler::SampleIndices& expected) {
    report_.checked += expected.size();
    const auto count = static_cast<std::int64_t>(order.size());
    if (count != expected.size()) {
      report_.wrong_data =
          fmt::format("{} samples were loaded, and the sampler has {}", count, expected.size());
    }
    for (std::int64_t i = 0; i < std::min(count, expected.size()); ++i) {
      const std::int64_t got = order[static_cast<std::size_t>(i)];
      if (got == expected[i] || !report_.wrong_data.empty()) continue;
      report_.wrong_data =
          fmt::format("sample {} of the epoch is {} instead of {}", i, got, expected[i]);
    }
  }

  const scenario::LoadingProgram& program_;
  const std::uint64_t seed_;
  const RankPorts& ports_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<device::Buffer> sent_;
  std::unique_ptr<device::Buffer> received_;
  std::set<std::int64_t> seen_;
  std::vector<std::int64_t> before_;  // the epoch before, in its order
  RankReport report_;
};

}  // namespace

RankReport Run(const scenario::LoadingProgram& program, std::uint64_t seed,
               const RankPorts& ports) {
  return LoadingRun(program, seed, ports).Run();
}

}  // namespace lockstep::stress::workloads
