#include "bench/collectives/collectives.h"
#include "bench/harness/bench_main.h"

int main(int argc, char** argv) {
  lockstep::bench::collectives::Collectives kind(
      {"bench_reduce_scatter",
       "Reduce-scatter: message sizes, as sharded training reduces gradients.",
       lockstep::collective::Collective::kReduceScatter, /*in_place_by_default=*/false,
       /*takes_models=*/false});
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
