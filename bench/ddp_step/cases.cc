// Cases whose iteration is a training step: one for each combination of the axes, all of them
// paired, with the buckets that DDP cuts (core/ddp/buckets.h).
#include "bench/ddp_step/cases.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/plan/step_fields.h"
#include "core/ddp/buckets.h"

namespace lockstep::bench::ddp_step {
namespace {

constexpr double kMiB = 1024 * 1024;

// The parts that add up to a step come first, then what explains it.
std::vector<plan::PartInfo> DdpParts() {
  return {{"buffer_broadcast_ns", "ns"},
          {"forward_ns", "ns"},
          {"backward_ns", "ns"},
          {"exposed_communication_ns", "ns"},
          {"copy_back_ns", "ns"},
          {"communication_ns", "ns"},
          {"overlap", ""}};
}

// What can be told without events that have times: the host is done launching, the device is done.
std::vector<plan::PartInfo> LaunchParts() { return {{"launch_ns", "ns"}, {"completion_ns", "ns"}}; }

// Of numbers, 0 means that nothing was passed.
class DefaultedSettings : public plan::SettingsWriter {
 public:
  using plan::SettingsWriter::operator();
  void operator()(const char* name, double value) {
    settings.emplace_back(name, value == 0 ? "default" : fmt::format("{}", value));
  }
};

// The gradient all-reduces of an iteration. A hook changes the type of what travels, not which
// gradients are compared.
std::vector<collective::Operation> BucketOperations(const ddp::ModelTensors& tensors,
                                                    const DdpStep& step) {
  std::vector<ddp::Gradient> gradients;
  for (const ddp::TensorInfo& info : tensors.params) gradients.push_back({info.numel, info.type});
  const ddp::BucketOptions options = BucketOptionsOf(step);
  const ddp::BucketLayout layout =
      step.first_iteration ? ddp::InitialBuckets(gradients, options)
                           : ddp::SteadyBuckets(gradients, tensors.ready_order, options);
  std::vector<collective::Operation> operations;
  for (const ddp::Bucket& bucket : layout) {
    operations.push_back({collective::Collective::kAllReduce, bucket.type,
                          collective::Reduction::kSum, collective::Blocking::kBlocking,
                          bucket.elements, 0});
  }
  return operations;
}

// "ddp_step/resnet50/cap:25", and what is not DDP's default.
std::string NameOf(const DdpStep& step) {
  std::string name =
      fmt::format("ddp_step/{}/cap:{}", step.model,
                  step.bucket_cap_mb > 0 ? fmt::format("{}", step.bucket_cap_mb) : "default");
  if (step.find_unused_parameters) name += "/find_unused";
  if (step.static_graph) name += "/static_graph";
  if (step.comm_hook != "none") name += "/hook:" + step.comm_hook;
  if (!step.broadcast_buffers) name += "/no_buffers";
  if (step.accumulate > 1) name += fmt::format("/accumulate:{}", step.accumulate);
  if (step.compute != "memory") name += "/compute:" + step.compute;
  if (step.first_iteration) name += "/first_iteration";
  if (step.cuda_graph) name += "/cuda_graph";
  if (!step.timeline && !step.cuda_graph) name += "/no_timeline";
  return name;
}

plan::PlannedCase CaseOf(const plan::PlannedModel& model, const DdpStep& step) {
  plan::PlannedCase planned{NameOf(step), BucketOperations(model.tensors, step),
                            false,        model.name,
                            -1,           step.bucket_cap_mb > 0 ? step.bucket_cap_mb : 25};
  planned.step = plan::PlanStep(step);
  planned.side_stream = true;
  planned.host_access = step.comm_hook == "powersgd";  // factorizes on the host
  planned.parts = step.timeline ? DdpParts() : LaunchParts();
  DefaultedSettings writer;
  DdpStep::Describe(writer, step);
  planned.settings = std::move(writer.settings);
  // PowerSGD keeps what it could not send, and makes a model with gradients of its own.
  if (step.comm_hook == "powersgd") planned.memory_bytes = 3 * plan::BytesOf(model.tensors.params);
  return planned;
}

// Every combination, the last axis fastest.
std::vector<DdpStep> StepsOf(const Axes& axes, const std::string& model) {
  std::vector<DdpStep> steps;
  DdpStep step{.model = model,
               .first_bucket_mb = axes.first_bucket_mb,
               .compute_ms = axes.compute_ms,
               .compute = axes.compute};
  // What is compared with a graph is timed as lightly.
  step.timeline = std::count(axes.cuda_graph.begin(), axes.cuda_graph.end(), true) == 0;
  steps.push_back(step);
  const auto multiply = [&](const auto& values, auto DdpStep::*field) {
    std::vector<DdpStep> more;
    for (const DdpStep& each : steps) {
      for (const auto& value : values) {
        more.push_back(each);
        more.back().*field = value;
      }
    }
    steps = std::move(more);
  };
  multiply(axes.cuda_graph, &DdpStep::cuda_graph);
  multiply(axes.first_iteration, &DdpStep::first_iteration);
  multiply(axes.find_unused, &DdpStep::find_unused_parameters);
  multiply(axes.static_graph, &DdpStep::static_graph);
  multiply(axes.accumulate, &DdpStep::accumulate);
  multiply(axes.comm_hooks, &DdpStep::comm_hook);
  multiply(axes.broadcast_buffers, &DdpStep::broadcast_buffers);
  multiply(axes.bucket_caps_mb, &DdpStep::bucket_cap_mb);
  return steps;
}

// What needs the host between the collectives of a step, or another graph for every step.
Status CheckGraphs(const Axes& axes) {
  const auto refuse = [](const char* option, const char* why) {
    return InvalidInput("--cuda-graph with {}: {}; leave one of the two out", option, why);
  };
  for (const bool on : axes.find_unused) {
    if (on) return refuse("--find-unused", "its bitmap is the host's, written in every step");
  }
  for (const bool on : axes.first_iteration) {
    if (on) return refuse("--first-iteration", "only steps that follow each other can be replayed");
  }
  for (const std::string& hook : axes.comm_hooks) {
    if (hook == "powersgd") return refuse("--comm-hook=powersgd", "the host factorizes");
  }
  return OkStatus();
}

Status CheckAxes(const Axes& axes) {
  for (const std::int64_t count : axes.accumulate) {
    if (count >= 1 && count <= 1000) continue;
    return InvalidInput("--accumulate {}: give 1 to 1000 micro-batches", count);
  }
  if (!(axes.compute_ms >= 0) || axes.compute_ms > 600'000) {
    return InvalidInput("--compute-ms {}: give 0 to 600000 milliseconds", axes.compute_ms);
  }
  if (axes.compute != "memory" && axes.compute != "matmul") {
    return InvalidInput("--compute: '{}' is unknown; give memory or matmul", axes.compute);
  }
  if (axes.compute == "matmul" && axes.compute_ms == 0) {
    return InvalidInput("--compute=matmul: for how long is not said; give --compute-ms, too");
  }
  const auto has = [](const auto& values, auto wanted) {
    return std::any_of(values.begin(), values.end(), wanted);
  };
  const auto is_on = [](bool on) { return on; };
  if (has(axes.cuda_graph, is_on)) LOCKSTEP_RETURN_IF_ERROR(CheckGraphs(axes));
  if (has(axes.first_iteration, is_on) && has(axes.static_graph, is_on) &&
      has(axes.accumulate, [](std::int64_t count) { return count > 1; })) {
    return InvalidInput(
        "--first-iteration with --static-graph and --accumulate: PyTorch fails when its first "
        "iteration with static_graph is under no_sync(); leave one of the three out");
  }
  return OkStatus();
}

}  // namespace

ddp::BucketOptions BucketOptionsOf(const DdpStep& step) {
  ddp::BucketOptions options;
  if (step.bucket_cap_mb > 0) {
    options.cap_bytes = static_cast<std::int64_t>(step.bucket_cap_mb * kMiB);
  }
  if (step.first_bucket_mb > 0) {
    options.first_cap_bytes = static_cast<std::int64_t>(step.first_bucket_mb * kMiB);
  }
  options.find_unused_parameters = step.find_unused_parameters;
  options.static_graph = step.static_graph;
  return options;
}

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size) {
  LOCKSTEP_ASSIGN_OR_RETURN(plan::Plan plan, plan::PlanWithoutCases(spec, world_size));
  LOCKSTEP_RETURN_IF_ERROR(CheckAxes(axes));
  plan.paired = true;
  plan.models = axes.models;
  for (const plan::PlannedModel& model : axes.models) {
    for (const DdpStep& step : StepsOf(axes, model.name)) {
      plan.cases.push_back(CaseOf(model, step));
    }
  }
  plan::SizeMemory(plan);
  return plan;
}

}  // namespace lockstep::bench::ddp_step
