// What every follower is told when all have met, so that they can do without the coordinator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/control/facts.h"
#include "core/control/frames.h"

namespace lockstep::control {

// Where an agent can be reached.
struct Contact {
  int rank = -1;
  std::string host;
  std::string address = {};  // IPv4, or "@name" of a unix socket
  std::uint16_t port = 0;
  static void Describe(auto& fields, auto& contact) {
    fields(contact.rank, contact.host, contact.address, contact.port);
  }
};

struct Roster {
  static constexpr FrameType kType = FrameType::kRoster;
  double lost_seconds = 0;        // core/control/heartbeat_monitor.h
  std::vector<AgentInfo> agents;  // one a rank; only candidates need them
  // Who may take the coordinator's place: the first of them that lives does.
  std::vector<Contact> candidates;
  static void Describe(auto& fields, auto& roster) {
    fields(roster.lost_seconds, roster.candidates, roster.agents);
  }
};

// Ascending by rank, without the coordinator; of every host two before any third, so that some
// are left whatever host dies. Few, because all are tried.
std::vector<Contact> ChooseCandidates(const std::vector<Contact>& contacts);
inline constexpr std::size_t kMostCandidates = 16;

}  // namespace lockstep::control
