// Whether a launch still has all its hosts: nobody can be started again on one that is gone.
#pragma once

#include <functional>

#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

// Whether an agent, or the launcher on its host, is gone.
bool HostsAreLost(const Coordinator& coordinator);

// For who is told to end: the launcher does that when a host is lost, and it may know first. Waits
// a moment for the agents of that host to be missed; what happens meanwhile goes to `handle`.
bool AwaitLostHosts(Coordinator& coordinator, const std::function<void(const Event&)>& handle);

}  // namespace lockstep::coordinator
