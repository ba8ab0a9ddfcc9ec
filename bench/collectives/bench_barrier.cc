// Barrier latency.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::bench::harness::BenchInfo info{"bench_barrier", "Barrier latency.",
                                                 lockstep::collective::Collective::kBarrier,
                                                 /*in_place_by_default=*/false,
                                                 /*takes_models=*/false};
  return lockstep::bench::harness::BenchMain(info, argc, argv);
}
