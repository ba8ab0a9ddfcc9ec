// All-reduce over message sizes and over the gradient buckets of real models.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::bench::harness::BenchInfo info{
      "bench_allreduce",
      "All-reduce latency and bandwidth: message sizes, or the gradient buckets of a model.",
      lockstep::collective::Collective::kAllReduce, /*in_place_by_default=*/false,
      /*takes_models=*/true};
  return lockstep::bench::harness::BenchMain(info, argc, argv);
}
