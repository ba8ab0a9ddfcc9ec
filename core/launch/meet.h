// How the agents of a launch find each other: on one host through a unix socket, on several through
// the launcher's MPI. LOCKSTEP_MEET=mpi forces the latter (for tests and troubleshooting).
#ifndef LOCKSTEP_CORE_LAUNCH_MEET_H_
#define LOCKSTEP_CORE_LAUNCH_MEET_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/launch/channel.h"
#include "core/launch/fleet.h"
#include "core/launch/lobby.h"
#include "core/launch/rank_agent.h"
#include "core/launch/signals.h"

namespace lockstep::launch {

// Rank 0: all others, ordered by rank.
Result<std::vector<Lobby::Guest>> MeetFollowers(const LaunchContext& context,
                                                const FleetOptions& options, RankAgent& agent,
                                                Signals& signals);
// The others: the channel to rank 0, and where to be reached when that is lost.
struct Joined {
  Channel control;
  std::unique_ptr<Lobby> lobby;
  std::string secret;
};
Result<Joined> MeetCoordinator(const LaunchContext& context, const FleetOptions& options,
                               RankAgent& agent, Signals& signals);

}  // namespace lockstep::launch

#endif  // LOCKSTEP_CORE_LAUNCH_MEET_H_
