// What a user asked a benchmark to do, before it is expanded into cases.
#ifndef LOCKSTEP_BENCH_PLAN_SPEC_H_
#define LOCKSTEP_BENCH_PLAN_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/steps.h"
#include "core/collective/collective.h"

namespace lockstep::bench::plan {

// What is compared with its exact answer.
enum class CheckMode : std::uint8_t {
  kOff,
  // Every element is compared after every iteration. A rotating window of the outputs is poisoned
  // before each, and one of the inputs rewritten in the warm-up iterations, so that the caches stay
  // as a plain loop leaves them.
  kRotate,
  // Every element is also rewritten and poisoned before every iteration.
  kFull,
};

// The operations of one DDP iteration: a model's gradient buckets in launch order.
struct BucketSequence {
  struct Bucket {
    std::int64_t count = 0;  // elements
    collective::DataType type =
        collective::DataType::kF32;  // of the gradients; used unless types are asked for
  };
  std::string model;
  double bucket_cap_mb = 0;
  std::vector<Bucket> buckets;
};

// The options of training steps; every combination of the lists is a case. The first value of a
// list is what the others are compared with.
struct DdpAxes {
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

// The options of sharded loading; as with DdpAxes.
struct LoadAxes {
  ShardedLoad common;  // what is no axis
  std::vector<bool> set_epoch = {true};
  std::vector<bool> drop_last = {false};
  std::vector<bool> weighted = {false};
  std::vector<double> slow_downs = {1};
};

// What is measured of the links between ranks.
struct LinkAxes {
  std::int64_t bytes = 1 << 20;
  bool one_at_a_time = false;       // one pair, else as many disjoint ones as there are
  std::optional<bool> all_at_once;  // also every rank with all others; none: where it can be done
  bool one_per_host = false;
  double slow_factor = 1.5;  // a link that is slower than usual by less is not slow
};

struct BenchSpec {
  collective::Collective collective = collective::Collective::kAllReduce;
  std::string backend = "mpi";

  bool sweep = true;  // sizes from begin to end
  std::int64_t begin_bytes = 8;
  std::int64_t end_bytes = std::int64_t{64} << 20;
  std::int64_t step_bytes = 0;  // > 0: begin, begin + step, …; else multiplied by `factor`
  double factor = 2;
  std::vector<BucketSequence> sequences;
  std::vector<PlannedModel> models;  // whose steps, or whose state's broadcasts, are measured
  DdpAxes ddp;
  LoadAxes load;
  LinkAxes links;

  std::vector<collective::DataType> types = {collective::DataType::kF32};
  bool types_given = false;
  std::vector<collective::Reduction> reductions = {collective::Reduction::kSum};
  std::vector<bool> in_place = {false};
  std::vector<collective::Blocking> blocking = {collective::Blocking::kBlocking};
  int root = 0;
  bool cuda_graph = false;  // collectives are captured once and replayed

  std::optional<std::int64_t> iterations;  // fixed count; else rounds until `precision`
  std::optional<std::int64_t> warmup;
  double precision = 0.05;  // half width of the 95 % interval of the median, relative
  // How far the medians of sweeps differ by drift of the machine that is slower than a sweep and so
  // can't be seen in it: relative half width (95 %), added in quadrature to the stated interval.
  // 0.08 is what a shared virtual machine showed (scripts/check_coverage measures yours).
  double drift = 0.08;
  std::optional<double> time_budget_seconds;  // of a sweep; none: as much as it needs, see Rounds
  CheckMode check = CheckMode::kRotate;
  double deadline_seconds = 30;  // silence of a rank that is taken for a hang
  std::uint64_t seed = 1;
};

}  // namespace lockstep::bench::plan

#endif  // LOCKSTEP_BENCH_PLAN_SPEC_H_
