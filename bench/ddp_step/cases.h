// What is measured of training steps. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "core/base/named_members.h"
#include "core/base/status.h"
#include "core/ddp/buckets.h"

namespace lockstep::bench::ddp_step {

// One training iteration under DistributedDataParallel, with PyTorch's names and defaults.
struct DdpStep {
  static constexpr char kName[] = "ddp_step";
  std::string model;           // of Plan::models
  double bucket_cap_mb = 0;    // 0: not passed
  double first_bucket_mb = 0;  // 0: DDP's
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool broadcast_buffers = true;
  std::string comm_hook = "none";
  std::int64_t accumulate = 1;     // micro-batches, all but the last under no_sync()
  double compute_ms = 0;           // of forward and backward; 0: what the memory traffic takes
  std::string compute = "memory";  // what that time is spent on: reading "memory", or "matmul"
  bool first_iteration = false;    // with the initial buckets, else with the rebuilt ones
  bool cuda_graph = false;         // captured once as a whole, and replayed
  bool timeline = true;  // it is told where the time goes; else only how long the host launches

  bool operator==(const DdpStep&) const = default;
  template <typename Fields, typename S>
  static void Describe(Fields& fields, S& step) {
    LOCKSTEP_FIELDS(fields, step, model, bucket_cap_mb, first_bucket_mb, find_unused_parameters,
                    static_graph, broadcast_buffers, comm_hook, accumulate, compute_ms, compute,
                    first_iteration, cuda_graph, timeline);
  }
};

// What is passed, the rest being DDP's defaults.
ddp::BucketOptions BucketOptionsOf(const DdpStep& step);

// Every combination of the lists is a case. The first value of a list is what the others are
// compared with.
struct Axes {
  std::vector<plan::PlannedModel> models;
  std::vector<double> bucket_caps_mb = {0};  // 0: not passed, which means 25
  double first_bucket_mb = 0;
  std::vector<bool> broadcast_buffers = {true};
  std::vector<std::string> comm_hooks = {"none"};
  std::vector<bool> find_unused = {false};
  std::vector<bool> static_graph = {false};
  std::vector<std::int64_t> accumulate = {1};
  std::vector<bool> first_iteration = {false};
  std::vector<bool> cuda_graph = {false};  // with a true one no case has a timeline
  double compute_ms = 0;
  std::string compute = "memory";
};

// A case for each combination of the axes, defaults first.
Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size);

}  // namespace lockstep::bench::ddp_step
