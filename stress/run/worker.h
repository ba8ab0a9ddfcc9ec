// A rank of a stress case: one case, then it leaves.
#pragma once

#include <memory>

#include "core/worker/worker_link.h"

namespace lockstep::stress::run {

// The whole life of a worker process; its exit code.
int RunStressWorker(std::unique_ptr<worker::WorkerLink> own_link);

}  // namespace lockstep::stress::run
