// Broadcast over message sizes, in place as DDP broadcasts buffers.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::BenchInfo info{
      "bench_broadcast", "Broadcast: message sizes, or the state of a model as DDP sends it.",
      lockstep::Collective::kBroadcast, /*in_place_by_default=*/true,
      /*takes_models=*/true};
  return lockstep::BenchMain(info, argc, argv);
}
