#include "bench/collectives/collectives.h"
#include "bench/harness/bench_main.h"

int main(int argc, char** argv) {
  lockstep::bench::collectives::Collectives kind(
      {"bench_barrier", "Barrier latency.", lockstep::collective::Collective::kBarrier,
       /*in_place_by_default=*/false, /*takes_models=*/false});
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
