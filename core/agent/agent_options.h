// What an agent is to do, the same on all ranks.
#pragma once

#include <cstddef>

#include "core/agent/agent_plugin.h"

namespace lockstep::agent {

struct AgentOptions {
  // A worker that is not idle and journals nothing for so long is reported overdue.
  double silence_deadline_seconds = 30;
  // A worker that is not idle and journals nothing for so long is reported quiet: no alarm, but the
  // moment to ask whether anyone can go on (core/coordinator/standstill_watch.h). 0: nobody asks.
  double quiet_seconds = 0;
  std::size_t journal_capacity = 1 << 14;       // events
  std::size_t outbox_capacity_bytes = 8 << 20;  // a power of two
  // Between samples of each host's GPUs (core/agent/gpu_watch.h). 0: none are taken.
  double gpu_sample_seconds = 1;
  // Makes what works beside every worker; none: nothing does.
  MakeAgentPlugin plugin = {};
};

}  // namespace lockstep::agent
