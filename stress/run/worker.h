// A rank of a stress case: one case, then it leaves.
#ifndef LOCKSTEP_STRESS_HARNESS_WORKER_H_
#define LOCKSTEP_STRESS_HARNESS_WORKER_H_

namespace lockstep::stress::harness {

// The whole life of a worker process; returns its exit code.
int RunStressWorker();

}  // namespace lockstep::stress::harness

#endif  // LOCKSTEP_STRESS_HARNESS_WORKER_H_
