// What happens among the followers when the coordinator is lost: each ends its worker, and looks
// for the first candidate of the roster that lives; that one, the successor, gathers what the
// others know and does the rest of the coordinator's work (CoordinatorOptions::on_failover).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/control/channel.h"
#include "core/control/rendezvous/join_server.h"
#include "core/control/roster.h"
#include "core/control/signals.h"
#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

using control::Channel;
using control::Contact;
using control::FrameType;

// How the peer of a channel was lost that is open, but does not answer: its kernel acknowledges
// what was sent, or does not.
Loss SilenceOf(const Channel& channel);

// Its process is on this host, and neither stopped nor gone: it waits for a processor, a disk or
// for others. False where that is not seen.
bool PeerRuns(const Channel& channel);

// The exit code of the launch, which the coordinator or its successor says last.
ExitCode CodeOfDismissal(const std::string& payload);

// What an agent leaves to the successor.
struct FailoverPart {
  int lifetime = -1;
  RankEvidence evidence;
  journal::Journal journal;
  std::string data;
  bool data_cut = false;                     // some is missing at its end
  std::vector<std::string> replicated = {};  // every candidate has them: they are not given on
};

class Failover {
 public:
  // `server`: where other orphans join this agent; none: it cannot succeed. `loss`: how the
  // coordinator was lost. `hurry_seconds`: what is left once a signal to end has come; `told`: it
  // has come already.
  Failover(const LaunchContext& context, const control::Roster& roster, std::string secret,
           control::rendezvous::JoinServer* server, control::Signals& signals, Loss loss,
           double hurry_seconds, bool told);

  // Gives the part to the successor, or succeeds. The exit code of this agent.
  ExitCode Run(FailoverPart own, const std::function<ExitCode(const FailoverReport&)>& on_failover);

 private:
  // The first candidate before us that welcomes us. What is learned of the others is kept.
  std::optional<Channel> FindSuccessor();
  double WelcomeSeconds() const;
  Loss Try(const Contact& candidate, std::optional<Channel>& channel);
  ExitCode Give(Channel& channel, const FailoverPart& own);
  FailoverReport Gather(FailoverPart own, std::vector<control::rendezvous::JoinRequest>& requests);
  void Hear(control::rendezvous::JoinRequest& request, FailoverReport& failover, Deadline deadline);
  void Conclude(FailoverReport& failover,
                const std::vector<control::rendezvous::JoinRequest>& requests) const;
  Loss LossOn(int rank, const FailoverReport& failover) const;
  std::size_t Expected() const;  // how many others may still come
  bool Hurried();
  Deadline Within(double seconds);

  const LaunchContext& context_;
  const control::Roster& roster_;
  const std::string secret_;
  control::rendezvous::JoinServer* join_server_;
  control::Signals& signals_;
  Loss loss_;  // of the coordinator, as all know it who came
  const double hurry_seconds_;
  std::optional<Deadline> hurried_;
  std::map<int, Loss> lost_;  // candidates that are not there, by rank
};

}  // namespace lockstep::coordinator
