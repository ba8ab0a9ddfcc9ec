// Latency and bandwidth between all pairs of ranks, and which link or host is slower than the rest.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::bench::harness::BenchInfo info{
      "bench_links",
      "Latency and bandwidth of the links between all ranks; slow links and hosts are singled out.",
      lockstep::collective::Collective::kSend,
      /*in_place_by_default=*/false,
      /*takes_models=*/false,
      lockstep::bench::harness::BenchKind::kLinks};
  return lockstep::bench::harness::BenchMain(info, argc, argv);
}
