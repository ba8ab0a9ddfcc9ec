// The coordinator's side of a launch. Members are in coordinator.cc (frames, questions) and
// coordinator_lifetimes.cc (the beginning and the end of workers), coordinator_clocks.cc.
#ifndef LOCKSTEP_CORE_COORDINATOR_COORDINATOR_IMPL_H_
#define LOCKSTEP_CORE_COORDINATOR_COORDINATOR_IMPL_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/rank_agent.h"
#include "core/control/frames.h"
#include "core/control/heartbeat_monitor.h"
#include "core/control/roster.h"
#include "core/control/signals.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/launcher_watch.h"
#include "core/coordinator/members.h"

namespace lockstep::coordinator {

class CoordinatorImpl final : public Coordinator {
 public:
  CoordinatorImpl(const control::LaunchContext& context, const CoordinatorOptions& options)
      : context_(context),
        options_(options),
        launcher_(context),
        agent_(
            context, options,
            [this](control::FrameType type, std::string payload) { OnReport(0, type, payload); }),
        members_(static_cast<std::size_t>(context.size)) {}

  Status Meet();

  int size() const override { return context_.size; }
  const std::vector<control::AgentInfo>& agents() const override { return agents_; }
  std::vector<verdict::RankPlace> places() const override;
  const HostClocks& clocks() const override { return clocks_; }
  void MeasureClocks(bool thoroughly) override;
  Status StartWorkers(const std::vector<control::WorkerSetup>& setups) override;
  int lifetime() const override { return lifetime_; }
  void Send(int rank, const control::Message& message) override;
  void SendAll(const control::Message& message) override;
  Event Next(Deadline deadline) override;
  std::vector<verdict::RankEvidence> Collect(Deadline deadline) override {
    return Ask(deadline, true);
  }
  std::vector<verdict::RankEvidence> Glance(Deadline deadline) override {
    return Ask(deadline, false);
  }
  void Signal(int rank, int signal) override;
  void Inject(int rank, std::uint32_t fault, const control::AgentFault& order) override;
  void SendToPlugin(int rank, const std::string& order) override {
    Order(rank, control::FrameType::kToPlugin, order);
  }
  std::vector<journal::Journal> Journals(std::size_t most, Deadline deadline) override;
  std::vector<journal::GpuSamples> ReadGpus(std::size_t most, Deadline deadline) override;
  std::vector<journal::WorkerLog> TakeLogs() override { return std::exchange(logs_, {}); }
  std::vector<Event> TakeData(Deadline deadline) override;
  void EndWorkers(Deadline deadline) override;
  void EndWorker(int rank, Deadline deadline) override;
  Status StartWorker(int rank) override;
  bool AwaitExits(Deadline deadline) override;
  void Replicate(const std::string& record) override;
  void Rest() override;
  void Dismiss() override;

 private:
  using Worker = Member::Worker;

  // The followers first: they work while our own agent does.
  void OrderAll(control::FrameType type, const std::string& payload);
  void Order(int rank, control::FrameType type, const std::string& payload = {});
  template <typename F>
  void OrderAll(const F& order) {
    OrderAll(F::kType, control::Encode(order));
  }
  template <typename F>
  void Order(int rank, const F& order) {
    Order(rank, F::kType, control::Encode(order));
  }
  void OnReport(int rank, control::FrameType type, const std::string& payload);
  void OnMeeting(int rank, control::FrameType type, const std::string& payload);
  void OnFaultDone(int rank, const std::string& payload);
  void OrderStart(std::vector<control::WorkerSetup> setups);
  void OnStarted(Member& member, const std::string& payload);
  void OnAnswer(Member& member, control::FrameType type, const std::string& payload);
  void OnLog(const std::string& payload);
  void AskGpus(std::size_t most, Deadline deadline);
  void DescribeGpus(std::vector<verdict::RankEvidence>& evidence, Deadline deadline);
  void Push(EventKind kind, int rank, int exit_code = 0, int signal = 0,
            control::Message message = {});
  void Lose(int rank, verdict::Loss loss);
  void LoseSilent(int rank);
  void OnLauncherGone(int rank);
  void OnToldToEnd(int rank);
  void SendRoster(const std::vector<control::Contact>& contacts);
  void KeepHeartbeats();
  Status Started(int rank) const;  // what became of the newest order to start a worker
  std::vector<verdict::RankEvidence> Ask(Deadline deadline, bool system);
  void OnClockTold(Member& member, const std::string& payload);
  // One round trip to a rank's agent, which also reads its clocks for us; false: no answer.
  bool ProbeClock(int rank, bool read, ClockRoundTrip& trip);
  void ExchangeClocks(std::size_t host, int probes);
  // From a rank's counter to ours.
  void Translate(const Member& member, journal::Journal& journal) const;
  void Translate(const Member& member, journal::GpuSamples& gpus) const;
  void PollOnce(Deadline deadline);
  void AwaitOwnSignal(const Event& event);
  void ReadMember(int rank);
  // Polls until `done` holds for every member that is not lost; false at the deadline.
  bool AwaitMembers(Deadline deadline, const std::function<bool(const Member&)>& done);

  const control::LaunchContext context_;
  const CoordinatorOptions options_;
  control::Signals signals_;
  LauncherWatch launcher_;
  std::optional<control::HeartbeatMonitor> heartbeats_;
  agent::RankAgent agent_;
  std::vector<Member> members_;
  std::vector<control::AgentInfo> agents_;
  std::vector<int> candidates_;  // for our place, ascending
  HostClocks clocks_;
  Deadline clocks_due_ = Deadline::AfterNs(0);
  std::int64_t clocks_since_ns_ = MonotonicNs();
  std::size_t next_host_ = 1;
  std::deque<Event> events_;
  std::vector<journal::WorkerLog> logs_;
  MeetingPlace meeting_;
  std::unique_ptr<control::PrivateShm> shm_;  // of this lifetime, if it has one
  std::uint64_t request_ = 0;
  int lifetime_ = -1;
  bool terminating_ = false;
  std::optional<Deadline> own_signal_by_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_CORE_COORDINATOR_COORDINATOR_IMPL_H_
