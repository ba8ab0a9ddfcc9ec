// Barrier latency.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::BenchInfo info{"bench_barrier", "Barrier latency.",
                                 lockstep::Collective::kBarrier, /*in_place_by_default=*/false,
                                 /*takes_models=*/false};
  return lockstep::BenchMain(info, argc, argv);
}
