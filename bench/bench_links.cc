// Latency and bandwidth between all pairs of ranks, and which link or host is slower than the rest.
#include "bench/harness/bench_info.h"

int main(int argc, char** argv) {
  const lockstep::BenchInfo info{
      "bench_links",
      "Latency and bandwidth of the links between all ranks; slow links and hosts are singled out.",
      lockstep::Collective::kSend,
      /*in_place_by_default=*/false,
      /*takes_models=*/false,
      lockstep::BenchKind::kLinks};
  return lockstep::BenchMain(info, argc, argv);
}
