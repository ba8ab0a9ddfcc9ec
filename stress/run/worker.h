// A rank of a stress case: one case, then it leaves.
#ifndef LOCKSTEP_STRESS_RUN_WORKER_H_
#define LOCKSTEP_STRESS_RUN_WORKER_H_

namespace lockstep::stress::run {

// The whole life of a worker process; returns its exit code.
int RunStressWorker();

}  // namespace lockstep::stress::run

#endif  // LOCKSTEP_STRESS_RUN_WORKER_H_
