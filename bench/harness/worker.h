// A rank of a benchmark: obeys the conductor until told to finish.
#ifndef LOCKSTEP_BENCH_HARNESS_WORKER_H_
#define LOCKSTEP_BENCH_HARNESS_WORKER_H_

namespace lockstep::bench::harness {

// The whole life of a worker process; returns its exit code.
int RunWorker();

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_WORKER_H_
