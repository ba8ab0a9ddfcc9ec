// How a follower is let in.
#pragma once

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/control/agent_info.h"
#include "core/control/channel.h"
#include "core/control/rendezvous/endpoint.h"
#include "core/control/roster.h"
#include "core/control/signals.h"

namespace lockstep::control::rendezvous {

// The follower's part: connects, says hello, waits to be admitted; again if it was dropped without
// a word. `own`: where this agent can be reached itself. kTerminated: a signal to end came; none is
// heard when `signals` is not given.
Result<Channel> Join(const Endpoint& endpoint, const AgentInfo& info, Signals* signals,
                     Deadline deadline, const Contact& own = {});

}  // namespace lockstep::control::rendezvous
