// The kinds of iterations a case can have, beside plain collectives.
#ifndef LOCKSTEP_BENCH_PLAN_STEPS_H_
#define LOCKSTEP_BENCH_PLAN_STEPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/ddp/manifest_model.h"

namespace lockstep::bench::plan {

// How the figures of all ranks become one value: that of the rank whose iteration took longest, so
// that parts of it add up; the mean; the maximum.
enum class Over : std::uint8_t { kSlowest, kMean, kMax };
std::string_view NameOf(Over over);

// A figure of every iteration beside its duration.
struct PartInfo {
  std::string name;   // "forward_ns"
  std::string units;  // "ns"; "" for a ratio
  Over over = Over::kSlowest;

  bool operator==(const PartInfo&) const = default;
};

// A model by name; the tensors travel with the plan, so that a run can be repeated from its file.
struct PlannedModel {
  std::string name;
  ddp::ModelTensors tensors;
};

// Only the operations of the case.
struct CollectiveCalls {
  bool operator==(const CollectiveCalls&) const = default;
};

// One training iteration under DistributedDataParallel, with PyTorch's names and defaults.
struct DdpStep {
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
};

// The state of a model as DDP broadcasts it from rank 0.
struct StateBroadcast {
  std::string model;
  bool constructor = false;  // parameters and buffers, once; else the buffers of every forward pass

  bool operator==(const StateBroadcast&) const = default;
};

// The next batch of a sharded dataset on every rank, then a barrier in place of the training step.
struct ShardedLoad {
  std::string dataset;         // a file; "": each rank makes one for itself, the same everywhere
  std::int64_t samples = 512;  // of that
  std::int64_t batch = 16;
  int workers = 2;
  double decode_passes = 4;  // over the bytes of a sample
  bool set_epoch = true;
  bool drop_last = false;
  bool weighted = false;  // images are drawn four times as often as texts
  double slow_down = 1;   // of decoding on `slow_rank`
  int slow_rank = 0;

  bool operator==(const ShardedLoad&) const = default;
};

// Messages between pairs of ranks, back and forth, beside each other: the pairs are disjoint, and
// the first rank of a pair begins. Or, without pairs, between all ranks of `everyone` at once.
struct LinkExchange {
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> everyone;
  std::int64_t bytes = 1 << 20;  // of the messages that tell the bandwidth
  bool retest = false;           // measured only when an earlier pass finds it suspicious

  bool operator==(const LinkExchange&) const = default;
};

using StepPlan = std::variant<CollectiveCalls, DdpStep, StateBroadcast, ShardedLoad, LinkExchange>;

// The names and values of a step's options, described once: fields("bucket_cap_mb", …).
template <typename Fields, typename S>
void DescribeDdpStep(Fields& fields, S& step) {
  fields("model", step.model);
  fields("bucket_cap_mb", step.bucket_cap_mb);
  fields("first_bucket_mb", step.first_bucket_mb);
  fields("find_unused_parameters", step.find_unused_parameters);
  fields("static_graph", step.static_graph);
  fields("broadcast_buffers", step.broadcast_buffers);
  fields("comm_hook", step.comm_hook);
  fields("accumulate", step.accumulate);
  fields("compute_ms", step.compute_ms);
  fields("compute", step.compute);
  fields("first_iteration", step.first_iteration);
  fields("cuda_graph", step.cuda_graph);
  fields("timeline", step.timeline);
}

template <typename Fields, typename S>
void DescribeShardedLoad(Fields& fields, S& step) {
  fields("dataset", step.dataset);
  fields("samples", step.samples);
  fields("batch", step.batch);
  fields("workers", step.workers);
  fields("decode_passes", step.decode_passes);
  fields("set_epoch", step.set_epoch);
  fields("drop_last", step.drop_last);
  fields("weighted", step.weighted);
  fields("slow_down", step.slow_down);
  fields("slow_rank", step.slow_rank);
}

template <typename Fields, typename S>
void DescribeLinkExchange(Fields& fields, S& step) {
  fields("pairs", step.pairs);
  fields("everyone", step.everyone);
  fields("bytes", step.bytes);
  fields("retest", step.retest);
}

template <typename Fields, typename S>
void DescribeStateBroadcast(Fields& fields, S& step) {
  fields("model", step.model);
  fields("constructor", step.constructor);
}

}  // namespace lockstep::bench::plan

#endif  // LOCKSTEP_BENCH_PLAN_STEPS_H_
