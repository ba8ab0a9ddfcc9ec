// Sharded loading: a batch from datasets/loader on every rank, then a barrier. The dataset is a
// file that the user names, or one that every rank makes for itself and that loses its name at
// once. One that is named is opened with the options, because the number of its samples limits the
// batches.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/bench_main.h"
#include "bench/loading/cases.h"
#include "bench/measure/kind.h"
#include "bench/measure/option_values.h"
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

// As typed.
struct RawOptions {
  std::vector<std::string> set_epoch, drop_last, weighted, slow_downs;
};

constexpr std::int64_t kMost = 1'000'000;  // samples, and ranks

Result<double> ReadFactor(const std::string& word) {
  LOCKSTEP_ASSIGN_OR_RETURN(const double factor, measure::ParseNumber("--slow-down", word));
  if (factor >= 0 && factor <= 1e9) return factor;
  return InvalidInput("--slow-down: '{}' is not a number from 0 to 1e9", word);
}

class Loading final : public measure::Kind {
 public:
  std::string name() const override { return "bench_sharding"; }
  std::string description() const override {
    return "Batches of a sharded dataset: samples a second, imbalance between ranks and its cost.";
  }
  bool takes_buffers() const override { return false; }  // samples are always compared
  void AddOptions(ArgumentParser& parser) override {
    ShardedLoad& load = axes_.common;
    parser.Add("--dataset=FILE", load.dataset,
               "A file of lockstep make-dataset (default: one that is made for the run)");
    parser.Add("--samples=COUNT", load.samples, "Samples of the dataset (of one that is made)")
        .Between(0, kMost)
        .ShowDefault();
    parser.Add("--batch=COUNT", load.batch, "Samples of a batch").Between(0, kMost).ShowDefault();
    parser.Add("--workers=COUNT", load.workers, "Threads that decode (0: the caller)")
        .Between(0, 64)
        .ShowDefault();
    parser
        .Add("--decode-passes=COUNT", load.decode_passes,
             "Work of decoding, in passes over the bytes")
        .BetweenReals(0, 1e4)
        .ShowDefault();
    measure::AddSwitches(parser, "--set-epoch", raw_.set_epoch,
                         "set_epoch before every epoch (1, the default, 0, or 0,1 for both)");
    measure::AddSwitches(parser, "--drop-last", raw_.drop_last,
                         "drop_last=True (0, the default, 1, or 0,1 for both)");
    measure::AddSwitches(parser, "--weighted", raw_.weighted,
                         "Weighted sampling (0, the default, 1, or 0,1 for both)");
    parser
        .Add("--slow-down=FACTOR", raw_.slow_downs,
             "How many times slower one rank decodes (one or several, beside 1)")
        .SplitAtCommas();
    parser.Add("--slow-rank=RANK", load.slow_rank, "The rank that --slow-down slows down")
        .Between(0, kMost)
        .ShowDefault();
  }

  Status ReadOptions(const ArgumentParser&, measure::ReportFormat, plan::BenchSpec&) override {
    ShardedLoad& load = axes_.common;
    if (!load.dataset.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(const datasets::shards::ShardFile file,
                                datasets::shards::ShardFile::Open(load.dataset));
      load.samples = file.samples();
    }
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--set-epoch", raw_.set_epoch, true, axes_.set_epoch));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--drop-last", raw_.drop_last, false, axes_.drop_last));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--weighted", raw_.weighted, false, axes_.weighted));
    for (const std::string& word : raw_.slow_downs) {
      LOCKSTEP_ASSIGN_OR_RETURN(const double factor, ReadFactor(word));
      measure::PutInto(factor, 1.0, axes_.slow_downs);
    }
    return OkStatus();
  }

  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return loading::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override {
    return [&bench](std::uint32_t i) { return std::make_unique<LoadStep>(bench, i); };
  }

 private:
  RawOptions raw_;
  Axes axes_;
};

}  // namespace
}  // namespace lockstep::bench::loading

int main(int argc, char** argv) {
  lockstep::bench::loading::Loading kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
