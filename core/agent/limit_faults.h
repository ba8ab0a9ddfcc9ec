// Faults that let resources run out. kEnvironment when the system refuses.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "core/agent/injection.h"
#include "core/base/status.h"

namespace lockstep::agent {

Result<std::unique_ptr<Injection>> LimitMemory(pid_t worker, std::int64_t bytes);
Result<std::unique_ptr<Injection>> LimitDescriptors(pid_t worker, int descriptors);
Result<std::unique_ptr<Injection>> LimitLockedMemory(pid_t worker, std::int64_t bytes);
Result<std::unique_ptr<Injection>> FillPrivateShm(pid_t worker, std::int64_t bytes);

}  // namespace lockstep::agent
