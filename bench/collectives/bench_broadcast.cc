// Broadcast over message sizes, in place as DDP broadcasts buffers.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::bench::harness::BenchInfo info{
      "bench_broadcast", "Broadcast: message sizes, or the state of a model as DDP sends it.",
      lockstep::collective::Collective::kBroadcast, /*in_place_by_default=*/true,
      /*takes_models=*/true};
  return lockstep::bench::harness::BenchMain(info, argc, argv);
}
