#include "bench/harness/ddp_options.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "bench/harness/model_buckets.h"
#include "bench/harness/option_lists.h"
#include "core/base/units.h"
#include "core/ddp/buckets.h"
#include "core/ddp/engine.h"

namespace lockstep::bench::harness {
namespace {

Status ReadHooks(const std::vector<std::string>& words, std::vector<std::string>& values) {
  if (words.empty()) return OkStatus();
  values.clear();
  for (const std::string& word : words) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ddp::CommHook hook, ddp::ParseCommHook("--comm-hook", word));
    PutInto(std::string(ddp::NameOf(hook)), std::string("none"), values);
  }
  return OkStatus();
}

// In MiB as typed: names show it.
Result<double> ReadMb(const std::string& option, const std::string& word) {
  LOCKSTEP_RETURN_IF_ERROR(ddp::ParseBucketMb(option, word).status());
  return std::strtod(word.c_str(), nullptr);
}

// DDP's default is always there, to be compared with.
Status ReadCaps(const DdpWords& words, plan::DdpAxes& axes) {
  for (const std::string& word : words.caps) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double mb, ReadMb("--bucket-cap-mb", word));
    PutInto(mb, 0.0, axes.bucket_caps_mb);
  }
  if (words.first_bucket.empty()) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(axes.first_bucket_mb, ReadMb("--first-bucket-mb", words.first_bucket));
  return OkStatus();
}

Status ReadAccumulate(const std::vector<std::string>& words, std::vector<std::int64_t>& values) {
  if (words.empty()) return OkStatus();
  values.clear();
  for (const std::string& word : words) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t count, ParseBytes("--accumulate", word));
    PutInto(count, std::int64_t{1}, values);
  }
  return OkStatus();
}

}  // namespace

void AddDdpOptions(ArgumentParser& parser, DdpWords& words) {
  parser.Add("--model", words.models, "Models by name (an unknown name lists them), or files")
      .SplitAtCommas();
  parser.Add("--bucket-cap-mb", words.caps, "DDP's bucket_cap_mb, beside its default")
      .SplitAtCommas();
  parser.Add("--first-bucket-mb", words.first_bucket, "Limit of the first bucket");
  parser.Add("--broadcast-buffers", words.buffers, "0, 1 (default) or 0,1").SplitAtCommas();
  parser.Add("--comm-hook", words.hooks, "none (default), all_reduce, fp16, bf16, powersgd")
      .SplitAtCommas();
  parser.Add("--find-unused", words.find_unused, "find_unused_parameters: 0 (default), 1, 0,1")
      .SplitAtCommas()
      .WithoutWordMeans(2, "1");
  parser.Add("--static-graph", words.static_graph, "static_graph: 0 (default), 1 or 0,1")
      .SplitAtCommas()
      .WithoutWordMeans(2, "1");
  parser
      .Add("--accumulate", words.accumulate,
           "Micro-batches of a step, all but the last under no_sync(); default 1")
      .SplitAtCommas();
  parser.Add("--compute-ms", words.compute_ms,
             "Time of forward and backward (default: what their memory traffic takes)");
  parser.Add("--compute", words.compute,
             "What --compute-ms is spent on: memory (default; reads it) or matmul (products of "
             "matrices)");
  parser
      .Add("--cuda-graph", words.cuda_graph,
           "nccl: the step is captured once and replayed as a CUDA graph: 0 (default), 1, 0,1")
      .SplitAtCommas()
      .WithoutWordMeans(2, "1");
  parser.Flag("--first-iteration", words.first_iteration,
              "Also the first iteration, whose single bucket is not rebuilt yet");
}

Status ReadDdpWords(const DdpWords& words, plan::BenchSpec& spec) {
  if (words.models.empty()) {
    return InvalidInput("--model: none is named; give one, such as --model=resnet50");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(spec.models, LoadModels(words.models));
  plan::DdpAxes& axes = spec.ddp;
  LOCKSTEP_RETURN_IF_ERROR(ReadCaps(words, axes));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadSwitches("--broadcast-buffers", words.buffers, true, axes.broadcast_buffers));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadSwitches("--find-unused", words.find_unused, false, axes.find_unused));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadSwitches("--static-graph", words.static_graph, false, axes.static_graph));
  LOCKSTEP_RETURN_IF_ERROR(ReadSwitches("--cuda-graph", words.cuda_graph, false, axes.cuda_graph));
  LOCKSTEP_RETURN_IF_ERROR(ReadHooks(words.hooks, axes.comm_hooks));
  LOCKSTEP_RETURN_IF_ERROR(ReadAccumulate(words.accumulate, axes.accumulate));
  if (words.first_iteration) axes.first_iteration = {false, true};
  axes.compute = words.compute;
  char* end = nullptr;
  axes.compute_ms = std::strtod(words.compute_ms.c_str(), &end);
  if (words.compute_ms.empty() || *end != '\0' || !std::isfinite(axes.compute_ms)) {
    return InvalidInput(fmt::format("--compute-ms: '{}' is not a number", words.compute_ms));
  }
  return OkStatus();
}

}  // namespace lockstep::bench::harness
