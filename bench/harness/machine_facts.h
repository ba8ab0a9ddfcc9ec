// What a result depends on: the machine, the kernel, the software, the settings.
#ifndef LOCKSTEP_BENCH_HARNESS_MACHINE_FACTS_H_
#define LOCKSTEP_BENCH_HARNESS_MACHINE_FACTS_H_

#include <string>
#include <vector>

#include "core/environment/facts.h"
#include "core/launch/context.h"
#include "core/launch/fleet.h"

namespace lockstep {

// Ordered facts for /environment. Of the coordinator's host: processor, memory, kernel, limits, and
// the environment variables that change collectives (OMPI_MCA_*, NCCL_*, GLOO_*, LD_PRELOAD …); of
// every rank: host, processors, clock; and the backend's versions that a worker reported (a JSON
// object of strings).
Facts MachineFacts(const std::vector<AgentInfo>& agents, const LaunchContext& context,
                   const std::string& worker_facts);

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_MACHINE_FACTS_H_
