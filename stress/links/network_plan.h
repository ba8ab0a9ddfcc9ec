// A fault of the network between hosts, as rules for the hosts whose packets it befalls: pure.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/coordinator/coordinator.h"
#include "stress/faults/fault_plan.h"
#include "stress/network/network_rule.h"

namespace lockstep::stress::links {

// For the agent of `rank`: the first one of its host.
struct HostRule {
  int rank = 0;
  network::NetworkRule rule;
};

// What the user gave for `key`; 0 where it was not given.
double AmountOf(const faults::PlannedFault& fault, const char* key);

// `addresses`: by rank, those of its host. kEnvironment in one line when the fault cannot be there:
// its ranks are on one host, or a host has no address.
Result<std::vector<HostRule>> PlanNetworkFault(
    const faults::PlannedFault& fault, const std::vector<control::AgentInfo>& agents,
    const std::vector<std::vector<std::string>>& addresses);

}  // namespace lockstep::stress::links
