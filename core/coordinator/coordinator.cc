// The coordinator is put together from its parts. Membership knows the ranks, Workers their
// workers, EvidenceCollector what is known of them, ClockProber what time it is there. What agents
// report goes to the part that it is about. What the user of the port is to hear becomes an event.
#include "core/coordinator/coordinator.h"

#include <csignal>
#include <optional>
#include <utility>

#include "core/coordinator/clock_prober.h"
#include "core/coordinator/evidence_collector.h"
#include "core/coordinator/membership.h"
#include "core/coordinator/workers.h"

namespace lockstep::coordinator {
namespace {

constexpr double kOwnSignalSeconds = 0.5;

class AgentsCoordinator final : public Coordinator {
 public:
  AgentsCoordinator(const control::LaunchContext& context, const CoordinatorOptions& options)
      : members_(context, options, events_,
                 [this](int rank, control::FrameType type, const std::string& payload) {
                   return OnReport(rank, type, payload);
                 }),
        clocks_(members_),
        workers_(members_, events_, options.workers_own_mpi),
        evidence_(members_, clocks_, options.gpu_sample_seconds > 0) {}

  Status Meet() {
    LOCKSTEP_RETURN_IF_ERROR(members_.Meet());
    clocks_.Begin();
    return OkStatus();
  }

  int size() const override { return members_.size(); }
  const std::vector<control::AgentInfo>& agents() const override { return members_.agents(); }
  std::vector<verdict::RankPlace> places() const override { return members_.places(); }
  const HostClocks& clocks() const override { return clocks_.clocks(); }
  void MeasureClocks(bool thoroughly) override { clocks_.Measure(thoroughly); }
  Status StartWorkers(const std::vector<control::WorkerSetup>& setups) override {
    own_signal_by_.reset();
    return workers_.StartAll(setups);
  }
  int lifetime() const override { return workers_.lifetime(); }
  void Send(int rank, const control::Message& message) override {
    LOCKSTEP_CHECK(message.type < control::kReservedMessageType, "a reserved message type");
    LOCKSTEP_CHECK(message.payload.size() <= control::kMaxPayloadBytes, "the message is too large");
    members_.Order(rank, control::FrameType::kToWorker, control::Encode(message));
  }
  void SendAll(const control::Message& message) override {
    for (int rank = size() - 1; rank >= 0; --rank) Send(rank, message);
  }
  Event Next(Deadline deadline) override;
  std::vector<verdict::RankEvidence> Collect() override {
    return evidence_.Collect(/*system=*/true);
  }
  std::vector<verdict::RankEvidence> Glance() override {
    return evidence_.Collect(/*system=*/false);
  }
  double SecondsAwake() const override { return members_.SecondsAwake(); }
  void Signal(int rank, int signal) override { workers_.Signal(rank, signal); }
  void Inject(int rank, std::uint32_t fault, const control::AgentFault& order) override {
    members_.Order(rank, control::FaultOrder{fault, order});
  }
  void SendToPlugin(int rank, const std::string& order) override {
    members_.Order(rank, control::FrameType::kToPlugin, order);
  }
  std::vector<journal::Journal> Journals(std::size_t most) override {
    return evidence_.Journals(most);
  }
  std::vector<journal::GpuSamples> ReadGpus(std::size_t most) override {
    return evidence_.ReadGpus(most);
  }
  std::vector<journal::WorkerLog> TakeLogs() override { return evidence_.TakeLogs(); }
  // Agents drain the outbox before they read the journal.
  std::vector<Event> TakeData() override {
    evidence_.Journals(0);
    return events_.TakeData();
  }
  void EndWorkers() override { workers_.EndAll(); }
  void EndWorker(int rank) override { workers_.End(rank); }
  Status StartWorker(int rank) override { return workers_.Start(rank); }
  bool AwaitExits(Deadline deadline) override { return workers_.AwaitExits(deadline); }
  void Replicate(const std::string& record) override { members_.Replicate(record); }
  void Rest() override { members_.Rest(); }
  void Dismiss() override { members_.Dismiss(); }

 private:
  bool OnReport(int rank, control::FrameType type, const std::string& payload);
  void OnFault(int rank, const std::string& payload);
  void AwaitOwnSignal(const Event& event);

  EventQueue events_;
  Membership members_;
  ClockProber clocks_;
  Workers workers_;
  EvidenceCollector evidence_;
  std::optional<Deadline> own_signal_by_;
};

bool AgentsCoordinator::OnReport(int rank, control::FrameType type, const std::string& payload) {
  switch (type) {
    case control::FrameType::kFromWorker:
      events_.Push(EventKind::kMessage, rank, 0, 0,
                   control::Decode<control::Message>(payload).value_or(control::Message{}));
      return true;
    case control::FrameType::kData:
      events_.Push(EventKind::kData, rank, 0, 0, {0, payload});
      return true;
    case control::FrameType::kContinued:
      events_.Push(EventKind::kContinued, rank);
      return true;
    case control::FrameType::kQuiet:
      events_.Push(EventKind::kQuiet, rank);
      return true;
    case control::FrameType::kOverdue:
      events_.Push(EventKind::kOverdue, rank);
      return true;
    case control::FrameType::kFromPlugin:
      events_.Push(EventKind::kPlugin, rank, 0, 0, {0, payload});
      return true;
    case control::FrameType::kFaultDone:
      OnFault(rank, payload);
      return true;
    default:
      return workers_.OnReport(rank, type, payload) || evidence_.OnReport(rank, type, payload) ||
             clocks_.OnReport(rank, type, payload);
  }
}

void AgentsCoordinator::OnFault(int rank, const std::string& payload) {
  auto report = control::Decode<control::FaultReport>(payload);
  if (!report) return;
  Event event{EventKind::kFault, rank, {report->fault, std::move(report->text)}};
  event.news = report->news;
  events_.Push(std::move(event));
}

// Slurm, systemd and others signal every process of a job, so that workers and agents can end of
// what their coordinator is about to hear. That is no fault of theirs: kTerminate is told first.
void AgentsCoordinator::AwaitOwnSignal(const Event& event) {
  const bool ends = event.signal == SIGTERM || event.signal == SIGINT || event.signal == SIGHUP;
  const bool of_worker = event.kind == EventKind::kSignalled && ends &&
                         event.signal != workers_.sent_signal(event.rank);
  const bool of_agent =
      event.kind == EventKind::kLost && members_.loss(event.rank) == verdict::Loss::kTold;
  if (!of_worker && !of_agent) return;
  // Once for all ranks of a lifetime.
  if (!own_signal_by_) own_signal_by_ = Deadline::AfterSeconds(kOwnSignalSeconds);
  while (!members_.terminating() && !own_signal_by_->Passed()) members_.PollOnce(*own_signal_by_);
  if (of_agent && !members_.terminating()) members_.NoteToldAlone(event.rank);
}

Event AgentsCoordinator::Next(Deadline deadline) {
  // Also when events wait: what is sent must go out, and a signal to end comes first.
  members_.PollOnce(events_.empty() ? deadline : Deadline::AfterNs(0));
  while (events_.empty()) {
    if (deadline.Passed()) return Event{};
    members_.PollOnce(deadline);
  }
  if (events_.front().rank >= 0) AwaitOwnSignal(events_.front());
  return events_.Take();
}

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::Open(const control::LaunchContext& context,
                                                       const CoordinatorOptions& options) {
  LOCKSTEP_CHECK(context.rank == 0, "only rank 0 opens the coordinator; the others follow");
  auto coordinator = std::make_unique<AgentsCoordinator>(context, options);
  LOCKSTEP_RETURN_IF_ERROR(coordinator->Meet());
  return std::unique_ptr<Coordinator>(std::move(coordinator));
}

}  // namespace lockstep::coordinator
