#include "bench/harness/bench_main.h"
#include "bench/loading/loading.h"

int main(int argc, char** argv) {
  lockstep::bench::loading::Loading kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
