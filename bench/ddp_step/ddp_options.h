// The options of training steps on the command line.
#ifndef LOCKSTEP_BENCH_HARNESS_DDP_OPTIONS_H_
#define LOCKSTEP_BENCH_HARNESS_DDP_OPTIONS_H_

#include <string>
#include <vector>

#include "bench/plan/spec.h"
#include "core/base/argument_parser.h"
#include "core/base/status.h"

namespace lockstep::bench::harness {

// As typed.
struct DdpWords {
  std::vector<std::string> models, caps, buffers, hooks, find_unused, static_graph, accumulate;
  std::vector<std::string> cuda_graph;
  std::string first_bucket, compute_ms = "0", compute = "memory";
  bool first_iteration = false;
};

void AddDdpOptions(ArgumentParser& parser, DdpWords& words);

// Into spec.models and spec.ddp. Errors name the option, the word and what is accepted.
Status ReadDdpWords(const DdpWords& words, plan::BenchSpec& spec);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_DDP_OPTIONS_H_
