// One agent's own rank: its worker, the memory shared with it, and the watch over it.
//
// It obeys orders and emits reports (core/control/frames.h) and does not know whether the
// coordinator sits in the same process or behind a socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent_faults.h"
#include "core/agent/agent_plugin.h"
#include "core/agent/child.h"
#include "core/agent/gpu_watch.h"
#include "core/agent/silence_watch.h"
#include "core/agent/sockets.h"
#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/control/context.h"
#include "core/control/frames.h"
#include "core/control/outbox.h"
#include "core/control/segment.h"

namespace lockstep::agent {

using control::FaultNews;
using control::FrameType;
using verdict::ProcessState;

class RankAgent {
 public:
  using Report = std::function<void(FrameType, std::string)>;
  RankAgent(const control::LaunchContext& context, const AgentOptions& options, Report report);

  // Starts lifetime 0 early: a worker that first exchanges addresses over the launcher's MPI.
  // Its kStartWorker order then only lets it go on.
  Result<Child*> StartExchangingWorker();

  void Obey(const control::Frame& frame);
  const TickScale& scale() const { return scale_; }

  // For the loop: what to poll (-1: nothing), and what to call then.
  int channel_fd() const;
  short poll_events() const;
  void OnChannel();      // the worker's channel is ready
  void OnChildChange();  // SIGCHLD came
  // Reports silences. Looks only when there could be one: the agent sleeps until then (wake_ms(),
  // for poll(2)), because it shares a processor with what is measured.
  void Watch();
  int wake_ms() const;
  int plugin_fd() const { return plugin_ ? plugin_->fd() : -1; }
  void OnPlugin();  // it has reports
  int lifetime() const { return lifetime_; }
  bool ended() const { return ending_; }  // the worker, by us
  bool has_worker() const { return child_ && !child_->gone(); }

  // Ends the worker, reaps it and reports what it left behind. Idempotent. A worker that does not
  // even die of SIGKILL (uninterruptible in the kernel) is left after 5 s.
  void End();
  // `system`: look at the process as well, which stops it for some milliseconds.
  verdict::RankEvidence Evidence(Deadline deadline, bool system = true);
  journal::Journal ReadJournal(std::size_t most) const;
  SilenceWatch::LastEvent NewestEvent() const;
  // Up to `most` of the newest samples of each of this host's GPUs; none where another agent of
  // the host has them. `age_seconds`: of the newest.
  journal::GpuSamples ReadGpus(std::size_t most, double& age_seconds) const;

 private:
  template <typename F>
  static F Order(const control::Frame& frame);
  template <typename F>
  void Tell(const F& frame) {
    report_(F::kType, control::Encode(frame));
  }
  Status Start(int lifetime, const control::WorkerSetup& setup);
  Status Spawn(control::ChildRole::Kind kind, int lifetime, const control::WorkerSetup& setup);
  void Pump();   // reports what came through the channel
  void Drain();  // reports what is in the outbox
  void OnFrame(control::Frame frame);
  void OnChange(const ChildChange& change);
  void TellOfChange(const ChildChange& change);
  void Signal(int signal);
  void Inject(std::uint32_t fault, const control::AgentFault& order);
  void AwaitEnd(Deadline deadline);
  const std::vector<TcpSocket>& LookAtSockets(bool search);
  void KeepLog();               // of a worker that is gone
  std::string LogPath() const;  // of what the worker was given, here and there
  const control::LaunchContext context_;
  const AgentOptions options_;
  const Report report_;
  const TickScale scale_;
  SilenceWatch silence_;
  std::unique_ptr<control::Segment> segment_;
  Fd log_;  // of the worker's library; the worker has it under the same number
  std::unique_ptr<AgentPlugin> plugin_;
  std::unique_ptr<GpuWatch> gpus_;  // of the host; of its lowest rank's agent
  std::unique_ptr<Child> child_;
  AgentFaults faults_;  // before the worker they end
  std::optional<control::OutboxReader> outbox_;
  std::optional<journal::JournalReader> journal_;
  WorkerState worker_;
  int lifetime_ = -1;
  bool awaits_order_ = false;  // an exchanging worker that was not told to go on
  bool ending_ = false;        // we killed it: its death is no news
  std::string last_call_;      // of the worker, when it was looked at last
  std::optional<SocketLooks> looks_;
  std::vector<TcpSocket> sockets_;  // of the worker, when they were looked at last
};

}  // namespace lockstep::agent
