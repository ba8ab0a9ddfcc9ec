// Hosts of which nothing is left, or nothing is heard, and agents that ended: what befell all ranks
// of a host alike befell the host. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict {

// How the agent of a rank was lost, as another agent saw it.
enum class Loss : std::uint8_t {
  kNone,
  kClosed,    // its kernel closed its connection: the process is gone
  kReset,     // something on the way reset its connection, or refused one; or its kernel did
  kCutOff,    // nothing came from it, and what was sent to it is not acknowledged either
  kDeaf,      // its kernel acknowledges what is sent to it, but the process does not answer
  kLeft,      // it says that nothing was heard of us, and went on without us
  kLauncher,  // it answers, but the launcher's daemon on its host is gone
  kTold,      // it says that a signal told it to end, and ends
  kGone,      // its process is gone, perhaps because all of the launch were told to end
};

struct RankPlace {
  std::string host;
  Loss loss = Loss::kNone;
  bool assumed = false;  // the loss is another agent's of its host: this one only was not heard
};

// Whether those of whom nothing is heard are the larger part of a launch, or went on without us:
// then it is us who are cut off, or were stopped, and others hold the name of the run's file.
bool WeAreCutOff(const std::vector<RankPlace>& places);

// Puts findings about hosts before all others: host_lost, launcher_lost (proved), host_cut_off,
// host_stopped (suspected, unless its agents say that their workers are stopped). Where no host is
// lost as a whole, agents that ended are named: agent_lost (proved), or unknown where they may have
// been ended with the launch. Connections that were reset make both a suspicion. So does an agent
// of the host that only was not heard, or may have been ended with the launch. What is said of the
// ranks of such a host or agent, and what others suffer from that, becomes evidence of it:
// their errors, and that they ended. A launch of one host can only have lost its launcher, or
// agents. Outcomes of ranks of which nothing is known follow: killed, hung, stopped; failed where
// nobody knows what ended them. Other findings say on which of several hosts their culprits are.
// The verdict: lost hosts fail; a lost agent alone says nothing of what was to be tested, so that
// it is unknown.
void NameLostHosts(const std::vector<RankPlace>& places, const std::vector<RankEvidence>& evidence,
                   Judgement& judgement);

}  // namespace lockstep::verdict
