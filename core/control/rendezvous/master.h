// Where the ranks of several hosts meet that PyTorch's variables describe: at MASTER_ADDR, the host
// of rank 0.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/control/rendezvous/endpoint.h"
#include "core/control/rendezvous/join_server.h"

namespace lockstep::control::rendezvous {

// Agents and watchers of one launch meet at ports of their own.
struct MasterPlace {
  const char* who;              // "watch"
  int above;                    // MASTER_PORT
  const char* port_variable;    // names another port
  const char* secret_variable;  // PyTorch's launchers give their ranks no secret, so a user may
};
inline constexpr MasterPlace kWatchers = {"watch", 1000, "LOCKSTEP_WATCH_PORT",
                                          "LOCKSTEP_WATCH_SECRET"};
inline constexpr MasterPlace kAgents = {"agents", 2000, "LOCKSTEP_MEET_PORT",
                                        "LOCKSTEP_MEET_SECRET"};

Result<Endpoint> EndpointAtMaster(const MasterPlace& place);

// Rank 0's part.
Result<std::unique_ptr<JoinServer>> ListenAtMaster(const MasterPlace& place,
                                                   const Endpoint& endpoint, int followers);

// The others' part: until rank 0 listens there. kTerminated: a signal to end came.
Status AwaitMaster(const MasterPlace& place, const Endpoint& endpoint, Signals& signals,
                   Deadline deadline);

}  // namespace lockstep::control::rendezvous
