// A rank of a benchmark: obeys the scheduler until told to finish.
#ifndef LOCKSTEP_BENCH_HARNESS_WORKER_H_
#define LOCKSTEP_BENCH_HARNESS_WORKER_H_

#include "bench/measure/kind.h"
#include "core/worker/worker_link.h"

namespace lockstep::bench::harness {

// The whole life of a worker process; its exit code.
int RunWorker(const measure::Kind& kind, worker::WorkerLink& link);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_WORKER_H_
