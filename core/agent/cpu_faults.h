// Faults that take processor time. kEnvironment when the system refuses.
#pragma once

#include <sys/types.h>

#include <memory>

#include "core/agent/injection.h"
#include "core/base/status.h"

namespace lockstep::agent {

inline constexpr int kMostHogs = 64;

Result<std::unique_ptr<Injection>> HogProcessor(pid_t worker, int processes);
Result<std::unique_ptr<Injection>> ThrottleProcessor(pid_t worker, double share);

}  // namespace lockstep::agent
