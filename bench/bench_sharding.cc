// Sharded loading on every rank, and what ranks that load slower cost the others.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::BenchInfo info{
      "bench_sharding",
      "Batches of a sharded dataset: samples a second, imbalance between ranks and its cost.",
      lockstep::Collective::kBarrier,
      /*in_place_by_default=*/false,
      /*takes_models=*/false,
      lockstep::BenchKind::kLoads};
  return lockstep::BenchMain(info, argc, argv);
}
