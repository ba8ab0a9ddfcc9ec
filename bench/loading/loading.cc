// The options of sharded loading. A dataset that is named is opened, because the number of its
// samples limits the batches.
#include "bench/loading/loading.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "bench/loading/load_step.h"
#include "bench/measure/option_values.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::bench::loading {
namespace {

Result<double> ReadNumber(const std::string& option, const std::string& word, double most) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (!word.empty() && *end == '\0' && value >= 0 && value <= most) return value;
  return InvalidInput(fmt::format("{}: '{}' is not a number from 0 to {}", option, word, most));
}

Result<std::int64_t> ReadCount(const std::string& option, const std::string& word, double most) {
  LOCKSTEP_ASSIGN_OR_RETURN(const double value, ReadNumber(option, word, most));
  if (value == std::floor(value)) return static_cast<std::int64_t>(value);
  return InvalidInput(fmt::format("{}: '{}' is not a whole number", option, word));
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

}  // namespace

void Loading::AddOptions(ArgumentParser& parser) {
  parser.Add("--dataset=FILE", raw_.dataset,
             "A file of lockstep make-dataset (default: one that is made for the run)");
  parser.Add("--samples=COUNT", raw_.samples, "Samples of the dataset (of one that is made)")
      .ShowDefault();
  parser.Add("--batch=COUNT", raw_.batch, "Samples of a batch").ShowDefault();
  parser.Add("--workers=COUNT", raw_.workers, "Threads that decode (0: the caller)").ShowDefault();
  parser.Add("--decode-passes=COUNT", raw_.passes, "Work of decoding, in passes over the bytes")
      .ShowDefault();
  const auto add_switch = [&](const std::string& name, std::vector<std::string>& words,
                              const std::string& help) {
    parser.Add(name + "=0|1", words, help).SplitAtCommas().WithoutWordMeans(2, "1");
  };
  add_switch("--set-epoch", raw_.set_epoch,
             "set_epoch before every epoch (1, the default, 0, or 0,1 for both)");
  add_switch("--drop-last", raw_.drop_last, "drop_last=True (0, the default, 1, or 0,1 for both)");
  add_switch("--weighted", raw_.weighted, "Weighted sampling (0, the default, 1, or 0,1 for both)");
  parser
      .Add("--slow-down=FACTOR", raw_.slow_downs,
           "How many times slower one rank decodes (one or several, beside 1)")
      .SplitAtCommas();
  parser.Add("--slow-rank=RANK", raw_.slow_rank, "The rank that --slow-down slows down")
      .ShowDefault();
}

Status Loading::ReadOptions(const ArgumentParser&, measure::ReportFormat, plan::BenchSpec&) {
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

measure::StepFactory Loading::StepsOf(const measure::Bench& bench) const {
  return [&bench](std::uint32_t i) { return std::make_unique<LoadStep>(bench, i); };
}

}  // namespace lockstep::bench::loading
