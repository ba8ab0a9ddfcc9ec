#include "bench/collectives/collectives.h"
#include "bench/harness/bench_main.h"

int main(int argc, char** argv) {
  lockstep::bench::collectives::Collectives kind(
      {"bench_allreduce",
       "All-reduce latency and bandwidth: message sizes, or the gradient buckets of a model.",
       lockstep::collective::Collective::kAllReduce, /*in_place_by_default=*/false,
       /*takes_models=*/true});
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
