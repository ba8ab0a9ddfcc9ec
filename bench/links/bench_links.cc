#include "bench/harness/bench_main.h"
#include "bench/links/links.h"

int main(int argc, char** argv) {
  lockstep::bench::links::Links kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
