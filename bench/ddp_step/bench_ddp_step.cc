// A whole training iteration under DistributedDataParallel, for one or several settings of it.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::bench::harness::BenchInfo info{
      "bench_ddp_step",
      "A training step of a model under DDP: where its time goes, and what DDP's options change.",
      lockstep::collective::Collective::kAllReduce,
      /*in_place_by_default=*/true,
      /*takes_models=*/true,
      lockstep::bench::harness::BenchKind::kDdpSteps};
  return lockstep::bench::harness::BenchMain(info, argc, argv);
}
