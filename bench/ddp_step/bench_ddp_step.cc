#include "bench/ddp_step/ddp_steps.h"
#include "bench/harness/bench_main.h"

int main(int argc, char** argv) {
  lockstep::bench::ddp_step::DdpSteps kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
