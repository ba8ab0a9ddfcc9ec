// What makes a benchmark binary: all the rest is the harness. One file with one of these is a
// benchmark.
#ifndef LOCKSTEP_BENCH_HARNESS_BENCH_INFO_H_
#define LOCKSTEP_BENCH_HARNESS_BENCH_INFO_H_

#include <string>

#include "core/collective/collective.h"

namespace lockstep::bench::harness {

// What an iteration is.
enum class BenchKind {
  kCollectives,  // of `collective`
  kDdpSteps,     // training steps
  kLoads,        // batches of a sharded dataset
  kLinks,        // messages between all pairs of ranks
};

struct BenchInfo {
  std::string name;         // "bench_allreduce"
  std::string description;  // first line of --help
  collective::Collective collective = collective::Collective::kAllReduce;
  bool in_place_by_default = false;  // as the collective is used in training
  bool takes_models = false;         // --model: gradient buckets, or broadcasts of a model's state
  BenchKind kind = BenchKind::kCollectives;
};

// The main function of every benchmark binary, for agents and workers alike.
int BenchMain(const BenchInfo& info, int argc, char** argv);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_BENCH_INFO_H_
