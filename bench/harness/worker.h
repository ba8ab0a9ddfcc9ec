// A rank of a benchmark: obeys the scheduler until told to finish.
#pragma once

#include "bench/measure/kind.h"
#include "core/worker/worker_link.h"

namespace lockstep::bench::harness {

// The whole life of a worker process; its exit code.
int RunWorker(const measure::Kind& kind, worker::WorkerLink& link);

}  // namespace lockstep::bench::harness
