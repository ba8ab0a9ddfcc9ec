// A rank of a stress case: one case, then it leaves.
#ifndef LOCKSTEP_STRESS_HARNESS_WORKER_H_
#define LOCKSTEP_STRESS_HARNESS_WORKER_H_

namespace lockstep {

// The whole life of a worker process; returns its exit code.
int RunStressWorker();

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_HARNESS_WORKER_H_
