// What works beside a worker whose links may be made bad: a relay (relay.h) and, for its host, a
// wire (wire.h), steered by the coordinator's LinkDirector.
#pragma once

#include "core/agent/agent_plugin.h"

namespace lockstep::stress::links {

// For CoordinatorOptions::plugin. `any_interface`: faults of the network may befall interfaces that
// are not of test hosts.
std::unique_ptr<agent::AgentPlugin> MakeLinkPlugin(int rank, bool any_interface);

}  // namespace lockstep::stress::links
