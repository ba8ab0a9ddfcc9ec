#include "bench/collectives/collectives.h"
#include "bench/harness/bench_main.h"

int main(int argc, char** argv) {
  lockstep::bench::collectives::Collectives kind(
      {"bench_broadcast", "Broadcast: message sizes, or the state of a model as DDP sends it.",
       lockstep::collective::Collective::kBroadcast, /*in_place_by_default=*/true,
       /*takes_models=*/true});
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
