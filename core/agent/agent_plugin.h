// Something of a suite that works beside a rank's worker, in its agent: a port of core/agent.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict/tcp_socket.h"

namespace lockstep::agent {

using verdict::TcpSocket;

// All calls come from the agent's own thread and must not wait.
class AgentPlugin {
 public:
  virtual ~AgentPlugin() = default;
  // A worker is about to start: "NAME=value" that its environment has besides the agent's.
  virtual std::vector<std::string> BeginLifetime(int lifetime) = 0;
  virtual void OnStarted(pid_t worker) = 0;
  // From the suite, through Coordinator::SendToPlugin.
  virtual void Obey(std::string_view order) = 0;
  // Readable when there are reports, which become EventKind::kPlugin; -1: there never are.
  virtual int fd() const = 0;
  virtual std::vector<std::string> TakeReports() = 0;
  // Gives the worker's sockets the names that its peers know them by, and adds what it knows of
  // them, also of those that are closed. Also when the worker is gone.
  virtual void Translate(std::vector<TcpSocket>& sockets) = 0;
  // As RankEvidence::echo_s.
  virtual double EchoSeconds() const = 0;
};

// Called once, when the agent starts; nullptr from it: none.
using MakeAgentPlugin = std::function<std::unique_ptr<AgentPlugin>(int rank)>;

// What an agent is to do, the same on all ranks.
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
