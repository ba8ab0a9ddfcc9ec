// The options of training steps, with PyTorch's names.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/ddp_step/cases.h"
#include "bench/ddp_step/ddp_step.h"
#include "bench/ddp_step/models.h"
#include "bench/harness/bench_main.h"
#include "bench/measure/kind.h"
#include "bench/measure/option_values.h"
#include "core/base/units.h"
#include "core/ddp/buckets.h"
#include "core/ddp/engine.h"

namespace lockstep::bench::ddp_step {
namespace {

// As typed.
struct RawOptions {
  std::vector<std::string> models, caps, buffers, hooks, find_unused, static_graph, accumulate;
  std::vector<std::string> cuda_graph;
  std::string first_bucket;
  bool first_iteration = false;
};

Status ReadHooks(const std::vector<std::string>& words, std::vector<std::string>& values) {
  if (words.empty()) return OkStatus();
  values.clear();
  for (const std::string& word : words) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ddp::CommHook hook, ddp::ParseCommHook("--comm-hook", word));
    measure::PutInto(std::string(ddp::NameOf(hook)), std::string("none"), values);
  }
  return OkStatus();
}

// In MiB as typed: names show it.
Result<double> ReadMb(const std::string& option, const std::string& word) {
  LOCKSTEP_RETURN_IF_ERROR(ddp::ParseBucketMb(option, word).status());
  return std::strtod(word.c_str(), nullptr);
}

// DDP's default is always there, to be compared with.
Status ReadCaps(const RawOptions& raw, Axes& axes) {
  for (const std::string& word : raw.caps) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double mb, ReadMb("--bucket-cap-mb", word));
    measure::PutInto(mb, 0.0, axes.bucket_caps_mb);
  }
  if (raw.first_bucket.empty()) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(axes.first_bucket_mb,
                            ReadMb("--first-bucket-mb=MIB", raw.first_bucket));
  return OkStatus();
}

Status ReadAccumulate(const std::vector<std::string>& words, std::vector<std::int64_t>& values) {
  if (words.empty()) return OkStatus();
  values.clear();
  for (const std::string& word : words) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t count, ParseBytes("--accumulate", word));
    measure::PutInto(count, std::int64_t{1}, values);
  }
  return OkStatus();
}

class DdpSteps final : public measure::Kind {
 public:
  std::string name() const override { return "bench_ddp_step"; }
  std::string description() const override {
    return "A training step of a model under DDP: where its time goes, and what DDP's options "
           "change.";
  }

  void AddOptions(ArgumentParser& parser) override {
    parser.Add("--model=NAME", raw_.models, "Models, by name or file (an unknown name lists them)")
        .SplitAtCommas();
    parser
        .Add("--bucket-cap-mb=MIB", raw_.caps,
             "DDP's bucket_cap_mb (one or several, beside its default)")
        .SplitAtCommas();
    parser.Add("--first-bucket-mb=MIB", raw_.first_bucket, "Limit of the first bucket");
    parser
        .Add("--broadcast-buffers=0|1", raw_.buffers,
             "DDP's broadcast_buffers (1, the default, 0, or 0,1 for both)")
        .SplitAtCommas();
    parser
        .Add("--comm-hook=WORD", raw_.hooks,
             "DDP's communication hook (none, the default, all_reduce, fp16, bf16, powersgd)")
        .SplitAtCommas();
    measure::AddSwitches(parser, "--find-unused", raw_.find_unused,
                         "DDP's find_unused_parameters (0, the default, 1, or 0,1 for both)");
    measure::AddSwitches(parser, "--static-graph", raw_.static_graph,
                         "DDP's static_graph (0, the default, 1, or 0,1 for both)");
    parser
        .Add("--accumulate=COUNT", raw_.accumulate,
             "Micro-batches of a step, all but the last under no_sync() (default 1)")
        .SplitAtCommas();
    parser.Add("--compute-ms=MS", axes_.compute_ms,
               "Time of forward and backward (default: what their memory traffic takes)");
    parser.Add("--compute=WORD", axes_.compute,
               "What --compute-ms is spent on (memory, the default, which reads it, or matmul, "
               "products of matrices)");
    measure::AddSwitches(
        parser, "--cuda-graph", raw_.cuda_graph,
        "nccl: an iteration is captured once and replayed as a CUDA graph (0, the default, 1, "
        "or 0,1 for both)");
    parser.Flag("--first-iteration", raw_.first_iteration,
                "Also the first iteration, whose single bucket is not rebuilt yet");
  }

  bool has_graph_option() const override { return true; }
  bool marks_device() const override { return true; }
  Status ReadOptions(const ArgumentParser&, measure::ReportFormat, plan::BenchSpec& spec) override {
    if (raw_.models.empty()) {
      return InvalidInput("--model: none is named; give one, such as --model=resnet50");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(axes_.models, LoadModels(raw_.models));
    LOCKSTEP_RETURN_IF_ERROR(ReadCaps(raw_, axes_));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--broadcast-buffers", raw_.buffers, true, axes_.broadcast_buffers));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--find-unused", raw_.find_unused, false, axes_.find_unused));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--static-graph", raw_.static_graph, false, axes_.static_graph));
    LOCKSTEP_RETURN_IF_ERROR(
        measure::ReadSwitches("--cuda-graph", raw_.cuda_graph, false, axes_.cuda_graph));
    LOCKSTEP_RETURN_IF_ERROR(ReadHooks(raw_.hooks, axes_.comm_hooks));
    LOCKSTEP_RETURN_IF_ERROR(ReadAccumulate(raw_.accumulate, axes_.accumulate));
    if (raw_.first_iteration) axes_.first_iteration = {false, true};
    spec.nccl.graphs = std::ranges::count(axes_.cuda_graph, true) > 0;
    return OkStatus();
  }

  std::string needs_host() const override { return ""; }
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return ddp_step::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override {
    const auto models = std::make_shared<ModelCache>(bench);
    return [&bench, models](std::uint32_t i) { return MakeDdpStep(bench, i, *models); };
  }

 private:
  RawOptions raw_;
  Axes axes_;
};

}  // namespace
}  // namespace lockstep::bench::ddp_step

int main(int argc, char** argv) {
  lockstep::bench::ddp_step::DdpSteps kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
