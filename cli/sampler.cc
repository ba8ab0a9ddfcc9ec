// `lockstep sampler`: the samples that a rank sees in an epoch.
#include "datasets/sampler/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>

#include "cli/subcommand.h"
#include "core/base/status.h"
#include "core/base/version.h"
#include "core/ddp/buckets.h"

namespace lockstep::cli {
namespace {

struct SamplerArguments {
  datasets::sampler::SamplerOptions sampler;
  std::string seed = "0";
  std::string torch = "2.6";
  std::string format = "text";
  bool no_shuffle = false;
};

// The indices with something between them, through one buffer: there may be 10^15 of them. A
// reader that went away ends it; main says so.
void PrintIndices(const datasets::sampler::SampleIndices& indices, char separator) {
  constexpr std::size_t kBufferBytes = 64 * 1024;
  fmt::memory_buffer text;
  for (std::int64_t k = 0; k < indices.size() && std::ferror(stdout) == 0; ++k) {
    if (k > 0) text.push_back(separator);
    fmt::format_to(std::back_inserter(text), "{}", indices[k]);
    if (text.size() < kBufferBytes) continue;
    std::fwrite(text.data(), 1, text.size(), stdout);
    text.clear();
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void PrintJson(const SamplerArguments& arguments, const datasets::sampler::SampleIndices& indices) {
  const datasets::sampler::SamplerOptions& options = arguments.sampler;
  fmt::print(
      "{{\"lockstep\":\"{}\",\"n\":{},\"world\":{},\"rank\":{},\"seed\":{},\"epoch\":{},"
      "\"shuffle\":{},\"drop_last\":{},\"torch\":\"{}\",\"count\":{},\"indices\":[",
      ThisVersionText(), options.samples, options.world, options.rank, arguments.seed,
      options.epoch, options.shuffle, options.drop_last, arguments.torch, indices.size());
  PrintIndices(indices, ',');
  fmt::print("]}}\n");
}

void PrintHash(const datasets::sampler::SampleIndices& indices) {
  datasets::sampler::IndexHash hash;
  for (std::int64_t k = 0; k < indices.size(); ++k) hash.Add(indices[k]);
  std::string first;
  for (std::int64_t k = 0; k < std::min<std::int64_t>(5, indices.size()); ++k) {
    first += fmt::format("{}{}", k > 0 ? ", " : "", indices[k]);
  }
  fmt::print("{} {:016x} [{}]\n", indices.size(), hash.value(), first);
}

Result<ExitCode> PrintSampler(SamplerArguments arguments) {
  datasets::sampler::SamplerOptions& options = arguments.sampler;
  options.shuffle = !arguments.no_shuffle;
  LOCKSTEP_ASSIGN_OR_RETURN(options.rules, ddp::ParseTorchRules("--torch", arguments.torch));
  LOCKSTEP_ASSIGN_OR_RETURN(options.seed,
                            datasets::sampler::ParseSeed("--seed", arguments.seed, options.epoch));
  LOCKSTEP_ASSIGN_OR_RETURN(const datasets::sampler::SampleIndices indices,
                            datasets::sampler::DistributedIndices(options));
  if (arguments.format == "json") {
    PrintJson(arguments, indices);
  } else if (arguments.format == "fnv") {
    PrintHash(indices);
  } else {
    PrintIndices(indices, '\n');
    if (indices.size() > 0) fmt::print("\n");
  }
  return ExitCode::kPass;
}

}  // namespace

Work AddSampler(ArgumentParser& parser) {
  auto arguments = std::make_shared<SamplerArguments>();
  datasets::sampler::SamplerOptions& options = arguments->sampler;
  parser.Add("--samples=COUNT", options.samples, "Samples of the dataset").Required();
  parser.Add("--ranks=COUNT", options.world, "Number of ranks").Required();
  parser.Add("--rank=RANK", options.rank, "The rank whose indices are printed").Required();
  parser
      .Add("--seed=SEED", arguments->seed,
           "Seed of all that is random (of the sampler, -2^63 to 2^64-1)")
      .ShowDefault();
  parser.Add("--epoch=COUNT", options.epoch, "As set by set_epoch").ShowDefault();
  parser.Flag("--no-shuffle", arguments->no_shuffle, "shuffle=False");
  parser.Flag("--drop-last", options.drop_last, "drop_last=True");
  parser
      .Add("--torch=VERSION", arguments->torch,
           "PyTorch whose rules count (1.9, 1.13, also for 2.0 to 2.5, or 2.6; they differ from "
           "214748364 samples on)")
      .ShowDefault();
  parser
      .Add("--format=WORD", arguments->format,
           "Form of what is printed (text: an index per line; json; fnv: count, 64-bit FNV sum, "
           "first five)")
      .OneOf({"text", "json", "fnv"})
      .ShowDefault();
  parser.Renamed("--n", "--samples");
  parser.Renamed("--world", "--ranks");
  return [arguments] { return PrintSampler(*arguments); };
}

}  // namespace lockstep::cli
