// `lockstep make-dataset`: samples to load, in one HDF5 file.
#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cli/subcommand.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "datasets/shards/samples.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::cli {
namespace {

// As typed; empty: the default of its kind.
struct MakeDatasetArguments {
  std::string path;
  std::string kind = "mixed";
  std::string min_bytes;
  std::string max_bytes;
  datasets::shards::DatasetSpec spec;
};

Result<ExitCode> MakeDataset(MakeDatasetArguments arguments) {
  datasets::shards::DatasetSpec& spec = arguments.spec;
  LOCKSTEP_ASSIGN_OR_RETURN(spec.kind,
                            datasets::shards::ParseDatasetKind("--kind", arguments.kind));
  if (spec.kind == datasets::shards::DatasetKind::kTokens) {
    spec.min_bytes = 512;
    spec.max_bytes = 8 * 1024;
  }
  if (!arguments.min_bytes.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.min_bytes, ParseBytes("--min-sample", arguments.min_bytes));
  }
  if (!arguments.max_bytes.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.max_bytes, ParseBytes("--max-sample", arguments.max_bytes));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t bytes,
                            datasets::shards::MakeShardFile(arguments.path, spec));
  fmt::print("{}: {} samples ({}), {}, seed {}\n", arguments.path, spec.samples,
             datasets::shards::NameOf(spec.kind), FormatBytes(bytes), spec.seed);
  return ExitCode::kPass;
}

}  // namespace

Work AddMakeDataset(ArgumentParser& parser) {
  auto arguments = std::make_shared<MakeDatasetArguments>();
  parser.Add("FILE=FILE", arguments->path, "The file; it is replaced").Required();
  parser.Add("--samples=COUNT", arguments->spec.samples, "Samples of the dataset").Required();
  parser
      .Add("--kind=WORD", arguments->kind,
           "Kind of the samples (images, tokens or mixed: half of each)")
      .ShowDefault();
  parser.Add("--min-sample=BYTES", arguments->min_bytes,
             "Smallest sample (default: 16K, of tokens 512)");
  parser.Add("--max-sample=BYTES", arguments->max_bytes,
             "Largest sample (sizes are log-uniform, the texts of a mixed dataset 16 times "
             "smaller; default: 256K, of tokens 8K)");
  parser.Add("--seed=SEED", arguments->spec.seed, "Seed of all that is random (sizes and contents)")
      .ShowDefault();
  parser.Renamed("--min-bytes", "--min-sample");
  parser.Renamed("--max-bytes", "--max-sample");
  return [arguments] { return MakeDataset(*arguments); };
}

}  // namespace lockstep::cli
