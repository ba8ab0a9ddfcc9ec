// A rank of a benchmark: obeys the scheduler until told to finish.
#ifndef LOCKSTEP_BENCH_HARNESS_WORKER_H_
#define LOCKSTEP_BENCH_HARNESS_WORKER_H_

#include "bench/measure/kind.h"

namespace lockstep::bench::harness {

// The whole life of a worker process; returns its exit code.
int RunWorker(const measure::Kind& kind);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_WORKER_H_
