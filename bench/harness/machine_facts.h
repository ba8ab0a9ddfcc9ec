// What a result depends on: the machine, the kernel, the software, the settings.
#ifndef LOCKSTEP_BENCH_HARNESS_MACHINE_FACTS_H_
#define LOCKSTEP_BENCH_HARNESS_MACHINE_FACTS_H_

#include <string>
#include <utility>
#include <vector>

#include "core/launch/context.h"
#include "core/launch/fleet.h"

namespace lockstep {

// Ordered facts for /environment. Of the coordinator's host: processor, memory, kernel, limits, and
// the environment variables that change collectives (OMPI_MCA_*, NCCL_*, GLOO_*, LD_PRELOAD …); of
// every rank: host, processors, clock; and the backend's versions that a worker reported (a JSON
// object of strings).
std::vector<std::pair<std::string, std::string>> MachineFacts(const std::vector<AgentInfo>& agents,
                                                              const LaunchContext& context,
                                                              const std::string& worker_facts);

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_MACHINE_FACTS_H_
