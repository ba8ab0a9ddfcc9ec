// What happens among the followers when the coordinator is lost: each ends its worker, and looks
// for the first candidate of the roster that lives; that one, the successor, gathers what the
// others know and does the rest of the coordinator's work (FleetOptions::succeed).
#ifndef LOCKSTEP_CORE_LAUNCH_SUCCESSION_H_
#define LOCKSTEP_CORE_LAUNCH_SUCCESSION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/launch/channel.h"
#include "core/launch/fleet.h"
#include "core/launch/lobby.h"
#include "core/launch/roster.h"
#include "core/launch/signals.h"

namespace lockstep::launch {

// How the peer of a channel was lost that is open, but does not answer: its kernel acknowledges
// what was sent, or does not.
verdict::Loss SilenceOf(const Channel& channel);

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
  Succession(const LaunchContext& context, const Roster& roster, std::string secret, Lobby* lobby,
             Signals& signals, verdict::Loss loss, double hurry_seconds, bool told);

  // Gives the bequest to the successor, or succeeds. The exit code of this agent.
  ExitCode Run(Bequest own, const std::function<ExitCode(const Legacy&)>& succeed);

 private:
  // The first candidate before us that welcomes us. What is learned of the others is kept.
  std::optional<Channel> FindSuccessor();
  verdict::Loss Try(const Contact& candidate, std::optional<Channel>& channel);
  ExitCode Give(Channel& channel, const Bequest& own);
  Legacy Gather(Bequest own, std::vector<Lobby::Guest>& guests);
  void Hear(Lobby::Guest& guest, Legacy& legacy, Deadline deadline);
  void Conclude(Legacy& legacy, const std::vector<Lobby::Guest>& guests) const;
  verdict::Loss LossOn(int rank, const Legacy& legacy) const;
  std::size_t Expected() const;  // how many others may still come
  bool Hurried();
  Deadline Within(double seconds);

  const LaunchContext& context_;
  const Roster& roster_;
  const std::string secret_;
  Lobby* lobby_;
  Signals& signals_;
  verdict::Loss loss_;  // of the coordinator, as all know it who came
  const double hurry_seconds_;
  std::optional<Deadline> hurried_;
  std::map<int, verdict::Loss> lost_;  // candidates that are not there, by rank
};

}  // namespace lockstep::launch

#endif  // LOCKSTEP_CORE_LAUNCH_SUCCESSION_H_
