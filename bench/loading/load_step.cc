// A batch from datasets/loader on every rank, then a barrier. The dataset is a file that the user
// names, or one that every rank makes for itself and that loses its name at once.
#include "bench/loading/load_step.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/loading/cases.h"
#include "bench/measure/step.h"
#include "bench/plan/step_fields.h"
#include "core/base/check.h"
#include "datasets/loader/loader.h"
#include "datasets/shards/samples.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::bench::loading {
namespace {

constexpr int kPrefetch = 2;  // PyTorch's prefetch_factor
constexpr double kImageWeight = 4;

class LoadStep final : public measure::Step {
 public:
  LoadStep(const measure::Bench& bench, std::uint32_t case_index)
      : bench_(bench), plan_(plan::StepOf<ShardedLoad>(bench.plan.cases[case_index])) {}

  // Begins an epoch and takes the batches that prefetching had time for.
  Status Prepare() override {
    if (loader_ == nullptr) LOCKSTEP_RETURN_IF_ERROR(Open());
    LOCKSTEP_RETURN_IF_ERROR(BeginEpoch());
    const std::int64_t ahead = std::int64_t{plan_.workers} * kPrefetch;
    for (std::int64_t i = 0; i < ahead && i + 1 < loader_->batches(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(Next());
    }
    return OkStatus();
  }

  Status Rewrite(bool, bool) override {
    return batch_.number + 1 < loader_->batches() ? OkStatus() : BeginEpoch();
  }

  Result<comm::Interval> Run() override {
    interval_.entry = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(Next());
    loaded_ = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(bench_.communicator.Enqueue(collective::kBarrierOperation,
                                                         collective::Buffers{}, bench_.stream));
    interval_.exit = NowTicks();
    return interval_;
  }

  // The loader verifies every byte; here, that the samples are the sampler's.
  void Compare(measure::Comparison& comparison) override {
    std::int64_t place = batch_.number * plan_.batch;
    for (const datasets::loader::LoadedSample& sample : batch_.samples) {
      ++comparison.checked;
      const std::int64_t expected = loader_->indices()[place++];
      if (sample.index == expected) continue;
      if (comparison.wrong++ > 0) continue;
      comparison.located.push_back({0, place - 1, fmt::format("sample {}", expected),
                                    fmt::format("sample {}", sample.index)});
    }
  }

  Status TakeParts(std::vector<double>& values) override {
    values.insert(values.end(),
                  {bench_.Ns(interval_.entry, loaded_), bench_.Ns(loaded_, interval_.exit),
                   static_cast<double>(batch_.samples.size())});
    return OkStatus();
  }

 private:
  Status Open() {
    if (!plan_.dataset.empty()) return OpenFile(plan_.dataset);
    const std::string path =
        fmt::format("{}/lockstep-{}.h5", std::filesystem::temp_directory_path().string(), getpid());
    const datasets::shards::DatasetSpec spec = {.samples = plan_.samples, .seed = bench_.plan.seed};
    LOCKSTEP_RETURN_IF_ERROR(datasets::shards::MakeShardFile(path, spec).status());
    const Status opened = OpenFile(path);
    unlink(path.c_str());  // what has opened it reads on, and nothing is left however the rank ends
    return opened;
  }

  Status OpenFile(const std::string& path) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::shards::ShardFile shard,
                              datasets::shards::ShardFile::Open(path));
    datasets::loader::LoaderOptions options;
    options.sampler.world = bench_.communicator.size();
    options.sampler.rank = bench_.communicator.rank();
    options.sampler.seed = bench_.plan.seed;
    options.sampler.drop_last = plan_.drop_last;
    options.drop_last_batch = true;  // so that all iterations are alike
    options.batch = plan_.batch;
    options.workers = plan_.workers;
    options.prefetch = kPrefetch;
    options.decode_passes = plan_.decode_passes;
    if (bench_.communicator.rank() == plan_.slow_rank) options.slow_down = plan_.slow_down;
    options.deadline_seconds = bench_.plan.deadline_seconds;
    options.journal = &bench_.link.journal();
    options.phase_after = journal::Phase::kMeasure;
    for (std::int64_t i = 0; plan_.weighted && i < shard.samples(); ++i) {
      const bool image =
          datasets::shards::KindOfSample(shard.spec(), i) == datasets::shards::SampleKind::kImage;
      options.weights.push_back(image ? kImageWeight : 1);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(loader_, datasets::loader::Loader::Open(path, options));
    return OkStatus();
  }

  Status BeginEpoch() {
    LOCKSTEP_RETURN_IF_ERROR(loader_->StartEpoch(plan_.set_epoch ? epochs_ : 0));
    ++epochs_;
    return OkStatus();
  }

  Status Next() {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool more, loader_->Next(batch_));
    LOCKSTEP_CHECK(more, "an epoch that is over was begun anew");
    return OkStatus();
  }

  measure::Bench bench_;
  ShardedLoad plan_;
  std::unique_ptr<datasets::loader::Loader> loader_;
  std::int64_t epochs_ = 0;  // begun
  datasets::loader::LoadedBatch batch_;
  Ticks loaded_ = 0;  // of the last Run
  comm::Interval interval_;
};

}  // namespace

std::unique_ptr<measure::Step> MakeLoadStep(const measure::Bench& bench, std::uint32_t case_index) {
  return std::make_unique<LoadStep>(bench, case_index);
}

}  // namespace lockstep::bench::loading
