// What happens among the followers when the coordinator is lost: each ends its worker, and looks
// for the first candidate of the roster that lives; that one, the successor, gathers what the
// others know and does the rest of the coordinator's work (FleetOptions::succeed).
#ifndef LOCKSTEP_CORE_COORDINATOR_SUCCESSION_H_
#define LOCKSTEP_CORE_COORDINATOR_SUCCESSION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/control/channel.h"
#include "core/control/rendezvous/lobby.h"
#include "core/control/roster.h"
#include "core/control/signals.h"
#include "core/coordinator/fleet.h"

namespace lockstep::coordinator {

// How the peer of a channel was lost that is open, but does not answer: its kernel acknowledges
// what was sent, or does not.
verdict::Loss SilenceOf(const control::Channel& channel);

// What an agent leaves to the successor.
struct Bequest {
  int lifetime = -1;
  verdict::RankEvidence evidence;
  journal::Journal journal;
  std::string data;
  std::vector<std::string> entrusted = {};  // every candidate has them: they are not given on
};

class Succession {
 public:
  // `lobby`: where other orphans knock at this agent; none: it cannot succeed. `loss`: how the
  // coordinator was lost. `hurry_seconds`: what is left once a signal to end has come; `told`: it
  // has come already.
  Succession(const control::LaunchContext& context, const control::Roster& roster,
             std::string secret, control::rendezvous::Lobby* lobby, control::Signals& signals,
             verdict::Loss loss, double hurry_seconds, bool told);

  // Gives the bequest to the successor, or succeeds. The exit code of this agent.
  ExitCode Run(Bequest own, const std::function<ExitCode(const Legacy&)>& succeed);

 private:
  // The first candidate before us that welcomes us. What is learned of the others is kept.
  std::optional<control::Channel> FindSuccessor();
  verdict::Loss Try(const control::Contact& candidate, std::optional<control::Channel>& channel);
  ExitCode Give(control::Channel& channel, const Bequest& own);
  Legacy Gather(Bequest own, std::vector<control::rendezvous::Lobby::Guest>& guests);
  void Hear(control::rendezvous::Lobby::Guest& guest, Legacy& legacy, Deadline deadline);
  void Conclude(Legacy& legacy, const std::vector<control::rendezvous::Lobby::Guest>& guests) const;
  verdict::Loss LossOn(int rank, const Legacy& legacy) const;
  std::size_t Expected() const;  // how many others may still come
  bool Hurried();
  Deadline Within(double seconds);

  const control::LaunchContext& context_;
  const control::Roster& roster_;
  const std::string secret_;
  control::rendezvous::Lobby* lobby_;
  control::Signals& signals_;
  verdict::Loss loss_;  // of the coordinator, as all know it who came
  const double hurry_seconds_;
  std::optional<Deadline> hurried_;
  std::map<int, verdict::Loss> lost_;  // candidates that are not there, by rank
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_CORE_COORDINATOR_SUCCESSION_H_
