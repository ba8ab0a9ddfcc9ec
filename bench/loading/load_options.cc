#include "bench/harness/load_options.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "bench/harness/option_lists.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::bench::harness {
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

Status ReadCommon(const LoadWords& words, plan::ShardedLoad& load) {
  load.dataset = words.dataset;
  LOCKSTEP_ASSIGN_OR_RETURN(load.samples, ReadCount("--samples", words.samples, 1e6));
  if (!load.dataset.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::shards::ShardFile file,
                              datasets::shards::ShardFile::Open(load.dataset));
    load.samples = file.samples();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(load.batch, ReadCount("--batch", words.batch, 1e6));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t workers, ReadCount("--workers", words.workers, 64));
  load.workers = static_cast<int>(workers);
  LOCKSTEP_ASSIGN_OR_RETURN(load.decode_passes, ReadNumber("--decode-passes", words.passes, 1e4));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t rank,
                            ReadCount("--slow-rank", words.slow_rank, 1e6));
  load.slow_rank = static_cast<int>(rank);
  return OkStatus();
}

}  // namespace

void AddLoadOptions(ArgumentParser& parser, LoadWords& words) {
  parser.Add("--dataset", words.dataset,
             "A file of lockstep make-dataset (default: one that is made for the run)");
  parser.Add("--samples", words.samples, "Samples of the dataset that is made").ShowDefault();
  parser.Add("--batch", words.batch, "Samples of a batch").ShowDefault();
  parser.Add("--workers", words.workers, "Threads that decode; 0: the caller").ShowDefault();
  parser.Add("--decode-passes", words.passes, "Work of decoding: passes over the bytes")
      .ShowDefault();
  parser.Add("--set-epoch", words.set_epoch, "0, 1 (default) or 0,1").SplitAtCommas();
  parser.Add("--drop-last", words.drop_last, "0 (default), 1 or 0,1").SplitAtCommas();
  parser.Add("--weighted", words.weighted, "Weighted sampling: 0 (default), 1 or 0,1")
      .SplitAtCommas();
  parser
      .Add("--slow-down", words.slow_downs,
           "How many times slower one rank decodes; one or several, beside 1")
      .SplitAtCommas();
  parser.Add("--slow-rank", words.slow_rank, "… which rank").ShowDefault();
}

Status ReadLoadWords(const LoadWords& words, plan::BenchSpec& spec) {
  plan::LoadAxes& axes = spec.load;
  LOCKSTEP_RETURN_IF_ERROR(ReadCommon(words, axes.common));
  LOCKSTEP_RETURN_IF_ERROR(ReadSwitches("--set-epoch", words.set_epoch, true, axes.set_epoch));
  LOCKSTEP_RETURN_IF_ERROR(ReadSwitches("--drop-last", words.drop_last, false, axes.drop_last));
  LOCKSTEP_RETURN_IF_ERROR(ReadSwitches("--weighted", words.weighted, false, axes.weighted));
  for (const std::string& word : words.slow_downs) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double factor, ReadNumber("--slow-down", word, 1e9));
    PutInto(factor, 1.0, axes.slow_downs);
  }
  return OkStatus();
}

}  // namespace lockstep::bench::harness
