// The main function of every benchmark, for agents and workers alike.
#ifndef LOCKSTEP_BENCH_HARNESS_BENCH_MAIN_H_
#define LOCKSTEP_BENCH_HARNESS_BENCH_MAIN_H_

#include "bench/measure/kind.h"

namespace lockstep::bench::harness {

int BenchMain(measure::Kind& kind, int argc, char** argv);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_BENCH_MAIN_H_
