// The coordinator is put together from its parts. Membership knows the ranks, Workers their
// workers, EvidenceCollector what is known of them, ClockProber what time it is there. What agents
// report goes to the part that it is about. What the user of the port is to hear becomes an event.
#include "core/coordinator/coordinator.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "core/coordinator/clock_prober.h"
#include "core/coordinator/membership.h"
#include "core/coordinator/workers.h"
#include "core/verdict/device_position.h"

namespace lockstep::coordinator {
namespace {

constexpr double kOwnSignalSeconds = 0.5;

// A launch that starts workers for hours keeps the newest.
constexpr std::size_t kMostLogs = 4096;
// Of each GPU, as evidence: a minute of them.
constexpr std::size_t kEvidenceSamples = 60;
// For an agent to read its worker's stack.
constexpr std::int64_t kStackNs = 3'750'000'000;

// What is known of all ranks: their agents are asked all at once, and answer or are lost. Stamps
// are put on the coordinator's clock as they come. A malformed answer is none.
class EvidenceCollector {
 public:
  // `gpus`: samples of GPUs are taken.
  EvidenceCollector(Membership& members, const ClockProber& clocks, bool gpus)
      : members_(members),
        clocks_(clocks),
        samples_gpus_(gpus),
        answers_(static_cast<std::size_t>(members.size())) {}

  // `system`: with what the operating system says.
  std::vector<RankEvidence> Collect(bool system) {
    const std::uint64_t request = members_.NewRequest();
    const std::int64_t asked_ns = MonotonicNs();
    members_.OrderAll(control::CollectOrder{request, kStackNs, system});
    members_.AwaitAnswers(request);
    if (!system) members_.NoteWait(MonotonicNs() - asked_ns);
    std::vector<RankEvidence> all;
    for (int rank = 0; rank < members_.size(); ++rank) {
      RankEvidence evidence;
      evidence.state = verdict::ProcessState::kLost;
      evidence.system = "its agent does not answer";
      evidence.host = members_.agents()[static_cast<std::size_t>(rank)].host;
      if (members_.Answered(rank, request)) {
        evidence = answers_[static_cast<std::size_t>(rank)].evidence;
      } else {
        members_.Suspect(rank);
      }
      evidence.rank = rank;
      all.push_back(std::move(evidence));
    }
    if (system) DescribeGpus(all);
    return all;
  }

  std::vector<journal::Journal> Journals(std::size_t most) {
    const std::uint64_t request = members_.NewRequest();
    members_.OrderAll(control::JournalOrder{request, most});
    members_.AwaitAnswers(request);
    std::vector<journal::Journal> all(answers_.size());
    for (int rank = 0; rank < members_.size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (members_.Answered(rank, request)) all[index] = std::move(answers_[index].journal);
    }
    return all;
  }

  std::vector<journal::GpuSamples> ReadGpus(std::size_t most) {
    std::vector<journal::GpuSamples> hosts;
    if (!samples_gpus_) return hosts;
    AskGpus(most);
    for (Answer& answer : answers_) {
      if (!answer.gpus.samples.empty()) hosts.push_back(std::move(answer.gpus));
    }
    return hosts;
  }
  std::vector<journal::WorkerLog> TakeLogs() { return std::exchange(logs_, {}); }

  // False: it is about something else.
  bool OnReport(int rank, FrameType type, const std::string& payload) {
    Answer& answer = answers_[static_cast<std::size_t>(rank)];
    if (type == FrameType::kEvidence) {
      auto report = control::Decode<control::EvidenceReport>(payload);
      if (!report) return true;
      answer.evidence = std::move(report->evidence);
      clocks_.Translate(rank, answer.evidence.journal);
      members_.NoteAnswer(rank, report->request);
    } else if (type == FrameType::kJournalRead) {
      auto report = control::Decode<control::JournalReport>(payload);
      if (!report) return true;
      answer.journal = std::move(report->journal);
      clocks_.Translate(rank, answer.journal);
      members_.NoteAnswer(rank, report->request);
    } else if (type == FrameType::kGpusRead) {
      auto report = control::Decode<control::GpusReport>(payload);
      if (!report) return true;
      answer.gpus = std::move(report->samples);
      answer.gpu_age_seconds = report->age_seconds;
      clocks_.Translate(rank, answer.gpus);
      members_.NoteAnswer(rank, report->request);
    } else if (type == FrameType::kLog) {
      OnLog(payload);
    } else {
      return false;
    }
    return true;
  }

 private:
  struct Answer {
    RankEvidence evidence;
    journal::Journal journal;
    journal::GpuSamples gpus;
    double gpu_age_seconds = 0;  // of the newest sample
  };
  void AskGpus(std::size_t most) {
    const std::uint64_t request = members_.NewRequest();
    for (Answer& answer : answers_) answer.gpus = {};
    members_.OrderAll(control::GpusOrder{request, most});
    members_.AwaitAnswers(request);
  }

  // One agent of each host has the samples, which are evidence of all ranks on it.
  void DescribeGpus(std::vector<RankEvidence>& evidence) {
    // Of a process that is gone its GPU's driver says nothing.
    const auto tells = [](const RankEvidence& rank) {
      return !rank.gpu_bus.empty() && (rank.state == verdict::ProcessState::kRunning ||
                                       rank.state == verdict::ProcessState::kStopped);
    };
    if (!samples_gpus_ || std::ranges::none_of(evidence, tells)) return;
    AskGpus(kEvidenceSamples);
    const std::vector<AgentInfo>& agents = members_.agents();
    for (RankEvidence& rank : evidence) {
      if (!tells(rank)) continue;
      const AgentInfo& own = agents[static_cast<std::size_t>(rank.rank)];
      const Ticks newest = rank.journal.events.empty() ? 0 : rank.journal.events.back().ticks;
      for (std::size_t i = 0; i < answers_.size() && rank.gpu.empty(); ++i) {
        if (agents[i].host != own.host || agents[i].boot_id != own.boot_id) continue;
        rank.gpu = verdict::DescribeGpuActivity(answers_[i].gpus, rank.gpu_bus, newest,
                                                answers_[i].gpu_age_seconds);
      }
    }
  }

  void OnLog(const std::string& payload) {
    auto report = control::Decode<control::LogReport>(payload);
    if (!report) return;
    if (logs_.size() >= kMostLogs) logs_.erase(logs_.begin());
    logs_.push_back(std::move(report->log));
  }

  Membership& members_;
  const ClockProber& clocks_;
  const bool samples_gpus_;
  std::vector<Answer> answers_;  // the newest, one a rank
  std::vector<journal::WorkerLog> logs_;
};

class AgentsCoordinator final : public Coordinator {
 public:
  AgentsCoordinator(const LaunchContext& context, const CoordinatorOptions& options)
      : members_(context, options, events_,
                 [this](int rank, FrameType type, const std::string& payload) {
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
  const std::vector<AgentInfo>& agents() const override { return members_.agents(); }
  std::vector<verdict::RankPlace> places() const override { return members_.places(); }
  const HostClocks& clocks() const override { return clocks_.clocks(); }
  void MeasureClocks(bool thoroughly) override { clocks_.Measure(thoroughly); }
  Status StartWorkers(const std::vector<WorkerSetup>& setups) override {
    own_signal_by_.reset();
    return workers_.StartAll(setups);
  }
  int lifetime() const override { return workers_.lifetime(); }
  void Send(int rank, const Message& message) override {
    LOCKSTEP_CHECK(message.type < control::kReservedMessageType, "a reserved message type");
    LOCKSTEP_CHECK(message.payload.size() <= control::kMaxPayloadBytes, "the message is too large");
    members_.Order(rank, FrameType::kToWorker, control::Encode(message));
  }
  void SendAll(const Message& message) override {
    for (int rank = size() - 1; rank >= 0; --rank) Send(rank, message);
  }
  Event Next(Deadline deadline) override {
    // Also when events wait: what is sent must go out, and a signal to end comes first.
    members_.PollOnce(events_.empty() ? deadline : Deadline::AfterNs(0));
    while (events_.empty()) {
      if (deadline.Passed()) return Event{};
      members_.PollOnce(deadline);
    }
    if (events_.front().rank >= 0) AwaitOwnSignal(events_.front());
    return events_.Take();
  }
  std::vector<RankEvidence> Collect() override { return evidence_.Collect(/*system=*/true); }
  std::vector<RankEvidence> Glance() override { return evidence_.Collect(/*system=*/false); }
  double SecondsAwake() const override { return members_.SecondsAwake(); }
  void Signal(int rank, int signal) override { workers_.Signal(rank, signal); }
  void Inject(int rank, std::uint32_t fault, const control::AgentFault& order) override {
    members_.Order(rank, control::FaultOrder{fault, order});
  }
  void SendToPlugin(int rank, const std::string& order) override {
    members_.Order(rank, FrameType::kToPlugin, order);
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
  void TellBusy() override { members_.TellBusy(); }
  void Rest() override { members_.Rest(); }
  void Dismiss(ExitCode code) override { members_.Dismiss(code); }

 private:
  bool OnReport(int rank, FrameType type, const std::string& payload) {
    switch (type) {
      case FrameType::kFromWorker:
        events_.Push(EventKind::kMessage, rank, 0, 0,
                     control::Decode<Message>(payload).value_or(Message{}));
        return true;
      case FrameType::kData:
        events_.Push(EventKind::kData, rank, 0, 0, {0, payload});
        return true;
      case FrameType::kContinued:
        events_.Push(EventKind::kContinued, rank);
        return true;
      case FrameType::kQuiet:
        events_.Push(EventKind::kQuiet, rank);
        return true;
      case FrameType::kOverdue:
        events_.Push(EventKind::kOverdue, rank);
        return true;
      case FrameType::kFromPlugin:
        events_.Push(EventKind::kPlugin, rank, 0, 0, {0, payload});
        return true;
      case FrameType::kFaultDone:
        OnFault(rank, payload);
        return true;
      default:
        return workers_.OnReport(rank, type, payload) || evidence_.OnReport(rank, type, payload) ||
               clocks_.OnReport(rank, type, payload);
    }
  }

  void OnFault(int rank, const std::string& payload) {
    auto report = control::Decode<control::FaultReport>(payload);
    if (!report) return;
    Event event{EventKind::kFault, rank, {report->fault, std::move(report->text)}};
    event.news = report->news;
    events_.Push(std::move(event));
  }
  // Slurm, systemd and others signal every process of a job, so that workers and agents can end of
  // what their coordinator is about to hear. That is no fault of theirs: kTerminate is told first.
  void AwaitOwnSignal(const Event& event) {
    const bool ends = event.signal == SIGTERM || event.signal == SIGINT || event.signal == SIGHUP;
    const bool of_worker = event.kind == EventKind::kSignalled && ends &&
                           event.signal != workers_.sent_signal(event.rank);
    const bool of_agent =
        event.kind == EventKind::kLost && members_.loss(event.rank) == Loss::kTold;
    if (!of_worker && !of_agent) return;
    // Once for all ranks of a lifetime.
    if (!own_signal_by_) own_signal_by_ = Deadline::AfterSeconds(kOwnSignalSeconds);
    while (!members_.terminating() && !own_signal_by_->Passed()) members_.PollOnce(*own_signal_by_);
    if (of_agent && !members_.terminating()) members_.NoteToldAlone(event.rank);
  }

  EventQueue events_;
  Membership members_;
  ClockProber clocks_;
  Workers workers_;
  EvidenceCollector evidence_;
  std::optional<Deadline> own_signal_by_;
};

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::Open(const LaunchContext& context,
                                                       const CoordinatorOptions& options) {
  LOCKSTEP_CHECK(context.rank == 0, "only rank 0 opens the coordinator; the others follow");
  auto coordinator = std::make_unique<AgentsCoordinator>(context, options);
  LOCKSTEP_RETURN_IF_ERROR(coordinator->Meet());
  return coordinator;
}

}  // namespace lockstep::coordinator
