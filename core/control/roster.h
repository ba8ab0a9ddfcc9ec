// What every follower is told when all have met, so that they can do without the coordinator.
#ifndef LOCKSTEP_CORE_CONTROL_ROSTER_H_
#define LOCKSTEP_CORE_CONTROL_ROSTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/control/agent_info.h"

namespace lockstep::control {

// Where an agent can be reached.
struct Contact {
  int rank = -1;
  std::string host;
  std::string address = {};  // IPv4, or "@name" of a unix socket
  std::uint16_t port = 0;
};

struct Roster {
  double lost_seconds = 0;        // core/control/heartbeat_monitor.h
  std::vector<AgentInfo> agents;  // one a rank
  // Who may take the coordinator's place: the first of them that lives does.
  std::vector<Contact> candidates;
};

// Ascending by rank, without the coordinator; of every host two before any third, so that some
// are left whatever host dies. Few, because all are tried.
std::vector<Contact> ChooseCandidates(const std::vector<Contact>& contacts);
inline constexpr std::size_t kMostCandidates = 16;

// Only candidates need the agents: for others they are left out.
std::string EncodeRoster(const Roster& roster, bool with_agents);
std::optional<Roster> DecodeRoster(std::string_view bytes);

}  // namespace lockstep::control

#endif  // LOCKSTEP_CORE_CONTROL_ROSTER_H_
