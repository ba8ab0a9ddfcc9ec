// Something that was done to a worker from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace lockstep::agent {

// Something that was done to a worker; its end undoes it.
class Injection {
 public:
  virtual ~Injection() = default;
  virtual std::string Describe() const = 0;
};

// kEnvironment when the system refuses. Of processor time:
inline constexpr int kMostHogs = 64;
Result<std::unique_ptr<Injection>> HogProcessor(pid_t worker, int processes);
Result<std::unique_ptr<Injection>> ThrottleProcessor(pid_t worker, double share);
// Of other resources, which run out:
Result<std::unique_ptr<Injection>> LimitMemory(pid_t worker, std::int64_t bytes);
Result<std::unique_ptr<Injection>> LimitDescriptors(pid_t worker, int descriptors);
Result<std::unique_ptr<Injection>> LimitLockedMemory(pid_t worker, std::int64_t bytes);
Result<std::unique_ptr<Injection>> FillPrivateShm(pid_t worker, std::int64_t bytes);

}  // namespace lockstep::agent
