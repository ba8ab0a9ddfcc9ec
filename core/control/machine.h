// What an agent finds out about its machine.
#pragma once

#include <string>

#include "core/base/process_stat.h"
#include "core/base/status.h"
#include "core/control/context.h"
#include "core/control/facts.h"

namespace lockstep::control {

using lockstep::HostName;

AgentInfo DescribeAgent(int rank);

// The IPv4 address on which the coordinator of several hosts listens: that of the interface that
// `wanted` names (a name or an address; from LOCKSTEP_INTERFACE), or, when it is empty, of the
// first one that is up and neither loopback nor a container's bridge (docker0, veth…).
Result<std::string> InterfaceAddress(const std::string& wanted,
                                     std::string_view variable = "LOCKSTEP_INTERFACE");

// Where a rank listens for its peers: empty (loopback) when all are on one host, else the address
// of the interface that LOCKSTEP_INTERFACE or GLOO_SOCKET_IFNAME names, or of the usual one.
Result<std::string> ListenAddress(const LaunchContext& context);

}  // namespace lockstep::control
