// Sharded loading on every rank, and what ranks that load slower cost the others.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::bench::harness::BenchInfo info{
      "bench_sharding",
      "Batches of a sharded dataset: samples a second, imbalance between ranks and its cost.",
      lockstep::collective::Collective::kBarrier,
      /*in_place_by_default=*/false,
      /*takes_models=*/false,
      lockstep::bench::harness::BenchKind::kLoads};
  return lockstep::bench::harness::BenchMain(info, argc, argv);
}
