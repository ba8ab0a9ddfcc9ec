// What a result depends on: the machine, the kernel, the software, the settings.
#pragma once

#include <string>
#include <vector>

#include "core/control/context.h"
#include "core/control/facts.h"
#include "core/environment/facts.h"

namespace lockstep::coordinator {

// Ordered facts for /environment. Of the coordinator's host: processor, memory, kernel, limits, and
// the environment variables that change collectives (OMPI_MCA_*, NCCL_*, GLOO_*, LD_PRELOAD …); of
// every rank: host, processors, clock; and WorkerFacts as a worker reported them, or "" when none
// got so far.
environment::Facts MachineFacts(const std::vector<control::AgentInfo>& agents,
                                const control::LaunchContext& context,
                                const std::string& worker_facts);

}  // namespace lockstep::coordinator
