// Faults from outside: what an agent does to its worker on order. Everything heals after its
// duration or with the worker, and nothing of it outlives the agent, whatever ends that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/injection.h"
#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/control/facts.h"

namespace lockstep::agent {

class AgentFaults {
 public:
  AgentFaults() = default;
  ~AgentFaults();

  AgentFaults(const AgentFaults&) = delete;
  AgentFaults& operator=(const AgentFaults&) = delete;

  // Adds what a worker of this setup needs to its `environment` ("NAME=VALUE").
  Status Prepare(const control::WorkerSetup& setup, std::vector<std::string>& environment);
  // Faults are of this process from now on.
  void Begin(pid_t worker) { worker_ = worker; }

  // Does it; what was done, in one line. kEnvironment, one line with the remedy: it cannot be done
  // here, and was not.
  Result<std::string> Apply(std::uint32_t fault, const control::AgentFault& order);
  // Heals what is due and tells of each.
  void HealDue(const std::function<void(std::uint32_t fault)>& healed);
  int wake_ms() const;  // until something is due; -1: nothing will be
  void HealAll() { active_.clear(); }
  // Its stops and continuations are ours.
  bool throttles() const;
  // Somebody else stops or continues the worker: no throttle interferes.
  void EndThrottle();

 private:
  struct Active {
    std::uint32_t fault;
    control::AgentFault order;
    std::unique_ptr<Injection> injection;
    std::optional<Deadline> until;  // none: it does not end by itself
    bool throttles() const { return order.kind == control::AgentFault::Kind::kCpuThrottle; }
  };
  Result<std::unique_ptr<Injection>> Inject(const control::AgentFault& order);
  Status OpenClock();

  Fd clock_;
  std::int64_t* clock_offset_ns_ = nullptr;  // mapped
  pid_t worker_ = 0;
  std::vector<Active> active_;
};

}  // namespace lockstep::agent
