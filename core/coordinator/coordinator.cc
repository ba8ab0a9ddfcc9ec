#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "core/control/machine.h"
#include "core/control/tcp.h"
#include "core/coordinator/coordinator_impl.h"
#include "core/coordinator/failover.h"
#include "core/coordinator/meet.h"

namespace lockstep::coordinator {
namespace {

constexpr double kHurrySeconds = 0.3;
constexpr double kOwnSignalSeconds = 0.5;

template <typename F>
int ValueIn(const std::string& payload) {
  return control::Decode<F>(payload).value_or(F{}).value;
}

}  // namespace

Status CoordinatorImpl::Meet() {
  LOCKSTEP_ASSIGN_OR_RETURN(const double lost_seconds,
                            control::LostSecondsFrom(std::getenv("LOCKSTEP_LOST_SECONDS")));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<control::rendezvous::JoinRequest> requests,
                            MeetFollowers(context_, options_, agent_, signals_));
  agents_.push_back(control::DescribeAgent(0));
  std::vector<control::Contact> contacts;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    agents_.push_back(std::move(requests[i].info));
    members_[i + 1].channel = std::move(requests[i].channel);
    control::SetTcpOptions(members_[i + 1].channel->fd(), lost_seconds);
    contacts.push_back(std::move(requests[i].contact));
  }
  heartbeats_.emplace(lost_seconds, MonotonicNs());
  SendRoster(contacts);
  for (const control::AgentInfo& agent : agents_)
    clocks_.Add(agent.rank, agent.host, agent.boot_id);
  MeasureClocks(/*thoroughly=*/true);
  return OkStatus();
}

void CoordinatorImpl::Order(int rank, control::FrameType type, const std::string& payload) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (type == control::FrameType::kStartWorker) member.start_order = payload;
  if (rank == 0) {
    agent_.Obey(control::Frame{control::Number(type), payload});
  } else if (!member.lost) {
    member.channel->Send(type, payload);
  }
}

void CoordinatorImpl::OrderAll(control::FrameType type, const std::string& payload) {
  for (int rank = size() - 1; rank >= 0; --rank) Order(rank, type, payload);
}

void CoordinatorImpl::Push(EventKind kind, int rank, int exit_code, int signal,
                           control::Message message) {
  events_.push_back(Event{kind, rank, std::move(message), exit_code, signal});
}

void CoordinatorImpl::OnMeeting(int rank, control::FrameType type, const std::string& payload) {
  const auto answer = [&](MeetingPlace::Waiting to, const std::string& value) {
    Order(to.rank, control::MeetingValue{to.request, value});
  };
  if (type == control::FrameType::kMeetingPut) {
    const auto put = control::Decode<control::MeetingPut>(payload);
    if (!put) return;
    for (const MeetingPlace::Waiting& who : meeting_.Put(put->key, put->value)) {
      answer(who, put->value);
    }
    return;
  }
  const auto get = control::Decode<control::MeetingGet>(payload);
  if (!get) return;
  const MeetingPlace::Waiting who{rank, get->request};
  if (const std::string* const value = meeting_.Get(get->key, who)) answer(who, *value);
}

void CoordinatorImpl::OnStarted(Member& member, const std::string& payload) {
  const auto report = control::Decode<control::StartedReport>(payload);
  member.started =
      report ? report->status.ToStatus() : EnvironmentError("malformed reply from its agent");
  if (member.started->ok()) member.worker = Worker::kRunning;
}

// Answers that are malformed are none.
void CoordinatorImpl::OnAnswer(Member& member, control::FrameType type,
                               const std::string& payload) {
  if (type == control::FrameType::kEvidence) {
    auto report = control::Decode<control::EvidenceReport>(payload);
    if (!report) return;
    member.evidence = std::move(report->evidence);
    Translate(member, member.evidence.journal);
    member.answered = report->request;
  } else if (type == control::FrameType::kJournalRead) {
    auto report = control::Decode<control::JournalReport>(payload);
    if (!report) return;
    member.journal = std::move(report->journal);
    Translate(member, member.journal);
    member.answered = report->request;
  } else if (type == control::FrameType::kGpusRead) {
    auto report = control::Decode<control::GpusReport>(payload);
    if (!report) return;
    member.gpu_age_seconds = report->age_seconds;
    member.gpus = std::move(report->samples);
    Translate(member, member.gpus);
    member.answered = report->request;
  } else if (const auto report = control::Decode<control::EndedReport>(payload)) {
    member.answered = report->request;
  }
}

void CoordinatorImpl::OnReport(int rank, control::FrameType type, const std::string& payload) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  switch (type) {
    case control::FrameType::kFromWorker:
      return Push(EventKind::kMessage, rank, 0, 0,
                  control::Decode<control::Message>(payload).value_or(control::Message{}));
    case control::FrameType::kData:
      return Push(EventKind::kData, rank, 0, 0, control::Message{0, payload});
    case control::FrameType::kExited:
      member.worker = Worker::kExited;
      return Push(EventKind::kExited, rank, ValueIn<control::ExitedReport>(payload));
    case control::FrameType::kSignalled:
      member.worker = Worker::kSignalled;
      return Push(EventKind::kSignalled, rank, 0, ValueIn<control::SignalledReport>(payload));
    case control::FrameType::kStopped:
      return Push(EventKind::kStopped, rank, 0, ValueIn<control::StoppedReport>(payload));
    case control::FrameType::kContinued:
      return Push(EventKind::kContinued, rank);
    case control::FrameType::kQuiet:
      return Push(EventKind::kQuiet, rank);
    case control::FrameType::kOverdue:
      return Push(EventKind::kOverdue, rank);
    case control::FrameType::kFaultDone:
      return OnFaultDone(rank, payload);
    case control::FrameType::kFromPlugin:
      return Push(EventKind::kPlugin, rank, 0, 0, control::Message{0, payload});
    case control::FrameType::kMeetingPut:
    case control::FrameType::kMeetingGet:
      return OnMeeting(rank, type, payload);
    case control::FrameType::kStarted:
      return OnStarted(member, payload);
    case control::FrameType::kEvidence:
    case control::FrameType::kJournalRead:
    case control::FrameType::kGpusRead:
    case control::FrameType::kEnded:
      return OnAnswer(member, type, payload);
    case control::FrameType::kClockTold:
      return OnClockTold(member, payload);
    case control::FrameType::kLog:
      return OnLog(payload);
    case control::FrameType::kDismissed:
    case control::FrameType::kHeartbeat:
      return;
    case control::FrameType::kLauncherGone:
      return OnLauncherGone(rank);
    case control::FrameType::kToldToEnd:
      return OnToldToEnd(rank);
    case control::FrameType::kTakenForLost:
      return Lose(rank, verdict::Loss::kLeft);
    default:
      LOCKSTEP_CHECK(rank != 0, "our own agent made a report of an unknown type");
      Lose(rank, verdict::Loss::kCutOff);  // we close: that proves no end
  }
}

void CoordinatorImpl::ReadMember(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.channel->Flush();
  member.channel->Fill();
  while (std::optional<control::Frame> frame = member.channel->Take()) {
    member.heard_ns = heartbeats_->Turn(MonotonicNs());
    member.suspected = verdict::Loss::kNone;
    OnReport(rank, static_cast<control::FrameType>(frame->type), frame->payload);
    if (member.lost) return;
  }
  if (!member.channel->open()) Lose(rank, control::LossOf(*member.channel));
}

void CoordinatorImpl::PollOnce(Deadline deadline) {
  std::vector<pollfd> items{{signals_.fd(), POLLIN, 0},
                            {agent_.channel_fd(), agent_.poll_events(), 0},
                            {agent_.plugin_fd(), POLLIN, 0},
                            {launcher_.fd(), POLLIN, 0}};
  const std::size_t before = items.size();
  for (const Member& member : members_) {
    if (!member.channel) continue;
    items.push_back({member.lost ? -1 : member.channel->fd(), member.channel->poll_events(), 0});
  }
  const int most_ms = deadline.RemainingMs();
  const int wake_ms = agent_.wake_ms();
  const int most_wake_ms = std::min(most_ms, heartbeats_->wake_ms());
  poll(items.data(), items.size(), wake_ms < 0 ? most_wake_ms : std::min(wake_ms, most_wake_ms));
  const control::Signals::Arrived arrived = signals_.Take();
  if (arrived.end != 0) {
    terminating_ = true;
    events_.push_front(Event{EventKind::kTerminate, 0, {}, 0, arrived.end});
  }
  if (arrived.warned) Push(EventKind::kWarned, 0);
  if (items[3].revents != 0) {
    launcher_.OnGone();
    OnLauncherGone(0);
  }
  if (items[1].revents != 0) agent_.OnChannel();
  if (items[2].revents != 0) agent_.OnPlugin();
  if (arrived.child) agent_.OnChildChange();
  agent_.Watch();
  for (int rank = 1; rank < size(); ++rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    if (member.lost) continue;
    // A channel can also have been closed by an order that it could not take.
    if (items[static_cast<std::size_t>(rank) + before - 1].revents != 0 ||
        !member.channel->open()) {
      ReadMember(rank);
    }
  }
  KeepHeartbeats();
}

bool CoordinatorImpl::AwaitMembers(Deadline deadline,
                                   const std::function<bool(const Member&)>& done) {
  const Deadline hurried = Deadline::AfterSeconds(kHurrySeconds);
  while (true) {
    const bool all = std::all_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.lost || done(member); });
    if (all) return true;
    // Told to end, there is about a second left in all before the launcher kills.
    if (terminating_) deadline = deadline.Earlier(hurried);
    if (deadline.Passed()) return false;
    PollOnce(deadline);
  }
}

void CoordinatorImpl::OnFaultDone(int rank, const std::string& payload) {
  auto report = control::Decode<control::FaultReport>(payload);
  if (!report) return;
  Event event;
  event.kind = EventKind::kFault;
  event.rank = rank;
  event.message = {report->fault, std::move(report->text)};
  event.news = report->news;
  events_.push_back(std::move(event));
}

void CoordinatorImpl::Send(int rank, const control::Message& message) {
  LOCKSTEP_CHECK(message.type < control::kReservedMessageType, "a reserved message type");
  LOCKSTEP_CHECK(message.payload.size() <= control::kMaxPayloadBytes, "the message is too large");
  Order(rank, control::FrameType::kToWorker, control::Encode(message));
}

void CoordinatorImpl::SendAll(const control::Message& message) {
  for (int rank = size() - 1; rank >= 0; --rank) Send(rank, message);
}

// Slurm, systemd and others signal every process of a job, so that workers and agents can end of
// what their coordinator is about to hear. That is no fault of theirs: kTerminate is told first.
void CoordinatorImpl::AwaitOwnSignal(const Event& event) {
  Member& member = members_[static_cast<std::size_t>(event.rank)];
  const bool ends = event.signal == SIGTERM || event.signal == SIGINT || event.signal == SIGHUP;
  const bool of_worker =
      event.kind == EventKind::kSignalled && ends && event.signal != member.sent_signal;
  const bool of_agent = event.kind == EventKind::kLost && member.loss == verdict::Loss::kTold;
  if (!of_worker && !of_agent) return;
  // Once for all ranks of a lifetime.
  if (!own_signal_by_) own_signal_by_ = Deadline::AfterSeconds(kOwnSignalSeconds);
  while (!terminating_ && !own_signal_by_->Passed()) PollOnce(*own_signal_by_);
  member.told_alone = member.told_alone || (of_agent && !terminating_);
}

Event CoordinatorImpl::Next(Deadline deadline) {
  // Also when events wait: what is sent must go out, and a signal to end comes first.
  PollOnce(events_.empty() ? deadline : Deadline::AfterNs(0));
  while (events_.empty()) {
    if (deadline.Passed()) return Event{};
    PollOnce(deadline);
  }
  if (events_.front().rank >= 0) AwaitOwnSignal(events_.front());
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void CoordinatorImpl::Signal(int rank, int signal) {
  members_[static_cast<std::size_t>(rank)].sent_signal = signal;
  Order(rank, control::SignalOrder{signal});
}

void CoordinatorImpl::Inject(int rank, std::uint32_t fault, const control::AgentFault& order) {
  Order(rank, control::FaultOrder{fault, order});
}

std::vector<verdict::RankEvidence> CoordinatorImpl::Ask(Deadline deadline, bool system) {
  const std::uint64_t request = ++request_;
  // Some of the time is left for the answers' way.
  const std::int64_t budget_ns = std::max<std::int64_t>(deadline.RemainingNs() * 3 / 4, 0);
  OrderAll(control::CollectOrder{request, budget_ns, system});
  AwaitMembers(deadline, [&](const Member& m) { return m.answered >= request; });
  std::vector<verdict::RankEvidence> all;
  for (int rank = 0; rank < size(); ++rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    verdict::RankEvidence evidence;
    evidence.state = verdict::ProcessState::kLost;
    evidence.system = "its agent does not answer";
    if (!member.lost && member.answered >= request) {
      evidence = member.evidence;
    } else if (!member.lost && rank != 0) {
      member.suspected = SilenceOf(*member.channel);
    }
    evidence.rank = rank;
    all.push_back(std::move(evidence));
  }
  if (system) DescribeGpus(all, deadline);
  return all;
}

std::vector<journal::Journal> CoordinatorImpl::Journals(std::size_t most, Deadline deadline) {
  const std::uint64_t request = ++request_;
  OrderAll(control::JournalOrder{request, most});
  AwaitMembers(deadline, [&](const Member& m) { return m.answered >= request; });
  std::vector<journal::Journal> all;
  for (Member& member : members_) {
    all.push_back(!member.lost && member.answered >= request ? std::move(member.journal)
                                                             : journal::Journal());
  }
  return all;
}

// Agents drain the outbox before they read the journal.
std::vector<Event> CoordinatorImpl::TakeData(Deadline deadline) {
  Journals(0, deadline);
  std::vector<Event> data;
  for (Event& event : std::exchange(events_, {})) {
    if (event.kind == EventKind::kData) {
      data.push_back(std::move(event));
    } else {
      events_.push_back(std::move(event));
    }
  }
  return data;
}

Result<std::unique_ptr<Coordinator>> Coordinator::Open(const control::LaunchContext& context,
                                                       const CoordinatorOptions& options) {
  LOCKSTEP_CHECK(context.rank == 0, "only rank 0 opens the coordinator; the others follow");
  auto coordinator = std::make_unique<CoordinatorImpl>(context, options);
  LOCKSTEP_RETURN_IF_ERROR(coordinator->Meet());
  return std::unique_ptr<Coordinator>(std::move(coordinator));
}

}  // namespace lockstep::coordinator
