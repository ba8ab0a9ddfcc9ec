// What is measured of a collective: sizes, the gradient buckets of models, or their state. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "bench/plan/sizes.h"
#include "core/base/status.h"
#include "core/collective/collective.h"

namespace lockstep::bench::collectives {

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

struct Axes {
  collective::Collective collective = collective::Collective::kAllReduce;
  bool sweep = true;  // over `sizes`
  plan::Sizes sizes = {};
  std::vector<BucketSequence> sequences = {};
  std::vector<plan::PlannedModel> models = {};  // whose state's broadcasts are measured
  std::vector<collective::DataType> types = {collective::DataType::kF32};
  bool types_given = false;
  std::vector<collective::Reduction> reductions = {collective::Reduction::kSum};
  std::vector<bool> in_place = {false};
  std::vector<collective::Blocking> blocking = {collective::Blocking::kBlocking};
  int root = 0;
};

// The state of a model as DDP broadcasts it from rank 0: what bench_broadcast --model measures.
struct StateBroadcast {
  static constexpr char kName[] = "state_broadcast";
  std::string model;
  bool constructor = false;  // parameters and buffers, once; else the buffers of every forward pass

  template <typename Fields, typename S>
  static void Describe(Fields& fields, S& step) {
    fields("model", step.model);
    fields("constructor", step.constructor);
  }
};

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size);

}  // namespace lockstep::bench::collectives
