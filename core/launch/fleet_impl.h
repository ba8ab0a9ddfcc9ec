// The coordinator's side of a launch. Members are in fleet.cc (frames, questions) and
// fleet_lifetimes.cc (the beginning and the end of workers), fleet_clocks.cc.
#ifndef LOCKSTEP_CORE_LAUNCH_FLEET_IMPL_H_
#define LOCKSTEP_CORE_LAUNCH_FLEET_IMPL_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/launch/fleet.h"
#include "core/launch/fleet_members.h"
#include "core/launch/launcher_watch.h"
#include "core/launch/protocol.h"
#include "core/launch/rank_agent.h"
#include "core/launch/roster.h"
#include "core/launch/signals.h"
#include "core/launch/vigil.h"

namespace lockstep::launch {

constexpr std::uint32_t Number(FrameType type) { return static_cast<std::uint32_t>(type); }

class FleetImpl final : public Fleet {
 public:
  FleetImpl(const LaunchContext& context, const FleetOptions& options)
      : context_(context),
        options_(options),
        launcher_(context),
        agent_(context, options,
               [this](FrameType type, std::string payload) { OnReport(0, type, payload); }),
        members_(static_cast<std::size_t>(context.size)) {}

  Status Meet();

  int size() const override { return context_.size; }
  const std::vector<AgentInfo>& agents() const override { return agents_; }
  std::vector<verdict::RankPlace> places() const override;
  const HostClocks& clocks() const override { return clocks_; }
  void MeasureClocks(bool thoroughly) override;
  Status StartWorkers(const std::vector<WorkerSetup>& setups) override;
  int lifetime() const override { return lifetime_; }
  void Send(int rank, const Message& message) override;
  void SendAll(const Message& message) override;
  FleetEvent Next(Deadline deadline) override;
  std::vector<verdict::RankEvidence> Collect(Deadline deadline) override {
    return Ask(deadline, true);
  }
  std::vector<verdict::RankEvidence> Glance(Deadline deadline) override {
    return Ask(deadline, false);
  }
  void Signal(int rank, int signal) override;
  void Inject(int rank, std::uint32_t fault, const AgentFault& order) override;
  void SendToCompanion(int rank, const std::string& order) override {
    Order(rank, FrameType::kToCompanion, order);
  }
  std::vector<journal::Journal> Journals(std::size_t most, Deadline deadline) override;
  std::vector<journal::GpuSamples> ReadGpus(std::size_t most, Deadline deadline) override;
  std::vector<journal::WorkerLog> TakeLogs() override { return std::exchange(logs_, {}); }
  std::vector<FleetEvent> TakeData(Deadline deadline) override;
  void EndWorkers(Deadline deadline) override;
  void EndWorker(int rank, Deadline deadline) override;
  Status StartWorker(int rank) override;
  bool AwaitExits(Deadline deadline) override;
  void Entrust(const std::string& record) override;
  void Rest() override;
  void Dismiss() override;

 private:
  using Worker = FleetMember::Worker;

  // The followers first: they work while our own agent does.
  void OrderAll(FrameType type, const std::string& payload);
  void Order(int rank, FrameType type, const std::string& payload);
  void OnReport(int rank, FrameType type, const std::string& payload);
  void OnMeeting(int rank, FrameType type, const std::string& payload);
  void OnFaultDone(int rank, const std::string& payload);
  void OrderStart(std::vector<WorkerSetup> setups);
  void OnAnswer(FleetMember& member, FrameType type, const std::string& payload);
  void OnLog(const std::string& payload);
  void AskGpus(std::size_t most, Deadline deadline);
  void DescribeGpus(std::vector<verdict::RankEvidence>& evidence, Deadline deadline);
  void Push(FleetEventKind kind, int rank, int exit_code = 0, int signal = 0, Message message = {});
  void Lose(int rank, verdict::Loss loss);
  void LoseSilent(int rank);
  void OnLauncherGone(int rank);
  void OnToldToEnd(int rank);
  void SendRoster(const std::vector<Contact>& contacts);
  void KeepVigil();
  Status Started(int rank) const;  // what became of the newest order to start a worker
  std::vector<verdict::RankEvidence> Ask(Deadline deadline, bool system);
  void OnClockTold(FleetMember& member, Decoder& decoder);
  // One round trip to a rank's agent, which also reads its clocks for us; false: no answer.
  bool ProbeClock(int rank, bool read, ClockRoundTrip& trip);
  void ExchangeClocks(std::size_t host, int probes);
  // From a rank's counter to ours.
  void Translate(const FleetMember& member, journal::Journal& journal) const;
  void Translate(const FleetMember& member, journal::GpuSamples& gpus) const;
  void PollOnce(Deadline deadline);
  void AwaitOwnSignal(const FleetEvent& event);
  void ReadMember(int rank);
  // Polls until `done` holds for every member that is not lost; false at the deadline.
  bool AwaitMembers(Deadline deadline, const std::function<bool(const FleetMember&)>& done);

  const LaunchContext context_;
  const FleetOptions options_;
  Signals signals_;
  LauncherWatch launcher_;
  std::optional<Vigil> vigil_;
  RankAgent agent_;
  std::vector<FleetMember> members_;
  std::vector<AgentInfo> agents_;
  std::vector<int> candidates_;  // for our place, ascending
  HostClocks clocks_;
  Deadline clocks_due_ = Deadline::AfterNs(0);
  std::int64_t clocks_since_ns_ = MonotonicNs();
  std::size_t next_host_ = 1;
  std::deque<FleetEvent> events_;
  std::vector<journal::WorkerLog> logs_;
  MeetingPlace meeting_;
  std::unique_ptr<PrivateShm> shm_;  // of this lifetime, if it has one
  std::uint64_t request_ = 0;
  int lifetime_ = -1;
  bool terminating_ = false;
  std::optional<Deadline> own_signal_by_;
};

}  // namespace lockstep::launch

#endif  // LOCKSTEP_CORE_LAUNCH_FLEET_IMPL_H_
