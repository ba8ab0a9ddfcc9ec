// The options of sharded loading. A dataset that is named is opened, because the number of its
// samples limits the batches.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/harness/bench_main.h"
#include "bench/loading/cases.h"
#include "bench/loading/load_step.h"
#include "bench/measure/kind.h"
#include "bench/measure/option_values.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::bench::loading {
namespace {

// As typed.
struct RawOptions {
  std::string dataset, samples = "512", batch = "16", workers = "2", passes = "4", slow_rank = "0";
  std::vector<std::string> set_epoch, drop_last, weighted, slow_downs;
};

Result<double> ReadNumber(const std::string& option, const std::string& word, double most) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (!word.empty() && *end == '\0' && value >= 0 && value <= most) return value;
  return InvalidInput("{}: '{}' is not a number from 0 to {}", option, word, most);
}

Result<std::int64_t> ReadCount(const std::string& option, const std::string& word, double most) {
  LOCKSTEP_ASSIGN_OR_RETURN(const double value, ReadNumber(option, word, most));
  if (value == std::floor(value)) return static_cast<std::int64_t>(value);
  return InvalidInput("{}: '{}' is not a whole number", option, word);
}

Status ReadCommon(const RawOptions& raw, ShardedLoad& load) {
  load.dataset = raw.dataset;
  LOCKSTEP_ASSIGN_OR_RETURN(load.samples, ReadCount("--samples", raw.samples, 1e6));
  if (!load.dataset.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::shards::ShardFile file,
                              datasets::shards::ShardFile::Open(load.dataset));
    load.samples = file.samples();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(load.batch, ReadCount("--batch", raw.batch, 1e6));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t workers, ReadCount("--workers", raw.workers, 64));
  load.workers = static_cast<int>(workers);
  LOCKSTEP_ASSIGN_OR_RETURN(load.decode_passes, ReadNumber("--decode-passes", raw.passes, 1e4));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t rank, ReadCount("--slow-rank", raw.slow_rank, 1e6));
  load.slow_rank = static_cast<int>(rank);
  return OkStatus();
}

class Loading final : public measure::Kind {
 public:
  std::string name() const override { return "bench_sharding"; }
  std::string description() const override {
    return "Batches of a sharded dataset: samples a second, imbalance between ranks and its cost.";
  }
  bool takes_buffers() const override { return false; }  // samples are always compared
  void AddOptions(ArgumentParser& parser) override {
    parser.Add("--dataset=FILE", raw_.dataset,
               "A file of lockstep make-dataset (default: one that is made for the run)");
    parser.Add("--samples=COUNT", raw_.samples, "Samples of the dataset (of one that is made)")
        .ShowDefault();
    parser.Add("--batch=COUNT", raw_.batch, "Samples of a batch").ShowDefault();
    parser.Add("--workers=COUNT", raw_.workers, "Threads that decode (0: the caller)")
        .ShowDefault();
    parser.Add("--decode-passes=COUNT", raw_.passes, "Work of decoding, in passes over the bytes")
        .ShowDefault();
    const auto add_switch = [&](const std::string& name, std::vector<std::string>& words,
                                const std::string& help) {
      parser.Add(name + "=0|1", words, help).SplitAtCommas().WithoutWordMeans(2, "1");
    };
    add_switch("--set-epoch", raw_.set_epoch,
               "set_epoch before every epoch (1, the default, 0, or 0,1 for both)");
    add_switch("--drop-last", raw_.drop_last,
               "drop_last=True (0, the default, 1, or 0,1 for both)");
    add_switch("--weighted", raw_.weighted,
               "Weighted sampling (0, the default, 1, or 0,1 for both)");
    parser
        .Add("--slow-down=FACTOR", raw_.slow_downs,
             "How many times slower one rank decodes (one or several, beside 1)")
        .SplitAtCommas();
    parser.Add("--slow-rank=RANK", raw_.slow_rank, "The rank that --slow-down slows down")
        .ShowDefault();
  }

  Status ReadOptions(const ArgumentParser&, measure::ReportFormat, plan::BenchSpec&) override {
    LOCKSTEP_RETURN_IF_ERROR(ReadCommon(raw_, axes_.common));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--set-epoch", raw_.set_epoch, true, axes_.set_epoch));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--drop-last", raw_.drop_last, false, axes_.drop_last));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--weighted", raw_.weighted, false, axes_.weighted));
    for (const std::string& word : raw_.slow_downs) {
      LOCKSTEP_ASSIGN_OR_RETURN(const double factor, ReadNumber("--slow-down", word, 1e9));
      measure::PutInto(factor, 1.0, axes_.slow_downs);
    }
    return OkStatus();
  }

  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return loading::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override {
    return [&bench](std::uint32_t i) { return MakeLoadStep(bench, i); };
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
