// How the agents of a launch find each other: on one host through a unix socket, on several through
// the launcher's MPI. LOCKSTEP_MEET=mpi forces the latter (for tests and troubleshooting).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/agent/rank_agent.h"
#include "core/base/status.h"
#include "core/control/channel.h"
#include "core/control/rendezvous/join_server.h"
#include "core/control/signals.h"
#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

// Rank 0: all others, ordered by rank.
Result<std::vector<control::rendezvous::JoinRequest>> MeetFollowers(
    const LaunchContext& context, const CoordinatorOptions& options, agent::RankAgent& agent,
    control::Signals& signals);
// The others: the channel to rank 0, and where to be reached when that is lost.
struct Joined {
  control::Channel control;
  std::unique_ptr<control::rendezvous::JoinServer> server;
  std::string secret;
};
Result<Joined> MeetCoordinator(const LaunchContext& context, const CoordinatorOptions& options,
                               agent::RankAgent& agent, control::Signals& signals);

}  // namespace lockstep::coordinator
