#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "core/control/machine.h"
#include "core/control/tcp.h"
#include "core/coordinator/fleet_impl.h"
#include "core/coordinator/meet.h"
#include "core/coordinator/succession.h"

namespace lockstep::coordinator {
namespace {

constexpr double kHurrySeconds = 0.3;
constexpr double kOwnSignalSeconds = 0.5;

}  // namespace

Status FleetImpl::Meet() {
  LOCKSTEP_ASSIGN_OR_RETURN(const double lost_seconds,
                            control::LostSecondsFrom(std::getenv("LOCKSTEP_LOST_SECONDS")));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<control::rendezvous::Lobby::Guest> guests,
                            MeetFollowers(context_, options_, agent_, signals_));
  agents_.push_back(control::DescribeAgent(0));
  std::vector<control::Contact> contacts;
  for (std::size_t i = 0; i < guests.size(); ++i) {
    agents_.push_back(std::move(guests[i].info));
    members_[i + 1].channel = std::move(guests[i].channel);
    control::SetTcpOptions(members_[i + 1].channel->fd(), lost_seconds);
    contacts.push_back(std::move(guests[i].contact));
  }
  vigil_.emplace(lost_seconds, MonotonicNs());
  SendRoster(contacts);
  for (const control::AgentInfo& agent : agents_)
    clocks_.Add(agent.rank, agent.host, agent.boot_id);
  MeasureClocks(/*thoroughly=*/true);
  return OkStatus();
}

void FleetImpl::Order(int rank, control::FrameType type, const std::string& payload) {
  FleetMember& member = members_[static_cast<std::size_t>(rank)];
  if (type == control::FrameType::kStartWorker) member.start_order = payload;
  if (rank == 0) {
    agent_.Obey(control::Frame{Number(type), payload});
  } else if (!member.lost) {
    member.channel->Send(Number(type), payload);
  }
}

void FleetImpl::OrderAll(control::FrameType type, const std::string& payload) {
  for (int rank = size() - 1; rank >= 0; --rank) Order(rank, type, payload);
}

void FleetImpl::Push(FleetEventKind kind, int rank, int exit_code, int signal,
                     control::Message message) {
  events_.push_back(FleetEvent{kind, rank, std::move(message), exit_code, signal});
}

void FleetImpl::OnMeeting(int rank, control::FrameType type, const std::string& payload) {
  control::Decoder decoder(payload);
  const auto answer = [&](MeetingPlace::Waiting to, const std::string& value) {
    Order(to.rank, control::FrameType::kMeetingValue,
          control::Encoder().Put(to.request).Text(value).Take());
  };
  if (type == control::FrameType::kMeetingPut) {
    const std::string key = decoder.Text();
    const std::string value = decoder.Text();
    if (!decoder.ok()) return;
    for (const MeetingPlace::Waiting& waiting : meeting_.Put(key, value)) answer(waiting, value);
    return;
  }
  const MeetingPlace::Waiting who{rank, decoder.Get<std::uint64_t>()};
  const std::string key = decoder.Text();
  if (!decoder.ok()) return;
  if (const std::string* const value = meeting_.Get(key, who)) answer(who, *value);
}

void FleetImpl::OnAnswer(FleetMember& member, control::FrameType type, const std::string& payload) {
  control::Decoder decoder(payload);
  if (type == control::FrameType::kStarted) {
    Status status = EnvironmentError("an agent gave no sense");
    Get(decoder, status);
    member.started = status;
    if (status.ok()) member.worker = Worker::kRunning;
    return;
  }
  const auto request = decoder.Get<std::uint64_t>();
  bool understood = decoder.ok();
  if (type == control::FrameType::kEvidence) {
    understood = Get(decoder, member.evidence);
    Translate(member, member.evidence.journal);
  }
  if (type == control::FrameType::kJournalRead) {
    understood = Get(decoder, member.journal);
    Translate(member, member.journal);
  }
  if (type == control::FrameType::kGpusRead) {
    member.gpu_age_seconds = decoder.Get<double>();
    understood = Get(decoder, member.gpus);
    Translate(member, member.gpus);
  }
  if (understood) member.answered = request;
}

void FleetImpl::OnReport(int rank, control::FrameType type, const std::string& payload) {
  FleetMember& member = members_[static_cast<std::size_t>(rank)];
  control::Decoder decoder(payload);
  switch (type) {
    case control::FrameType::kFromWorker:
      return Push(FleetEventKind::kMessage, rank, 0, 0, control::DecodeMessage(payload));
    case control::FrameType::kData:
      return Push(FleetEventKind::kData, rank, 0, 0, control::Message{0, payload});
    case control::FrameType::kExited:
      member.worker = Worker::kExited;
      return Push(FleetEventKind::kExited, rank, decoder.Get<std::int32_t>());
    case control::FrameType::kSignalled:
      member.worker = Worker::kSignalled;
      return Push(FleetEventKind::kSignalled, rank, 0, decoder.Get<std::int32_t>());
    case control::FrameType::kStopped:
      return Push(FleetEventKind::kStopped, rank, 0, decoder.Get<std::int32_t>());
    case control::FrameType::kContinued:
      return Push(FleetEventKind::kContinued, rank);
    case control::FrameType::kQuiet:
      return Push(FleetEventKind::kQuiet, rank);
    case control::FrameType::kOverdue:
      return Push(FleetEventKind::kOverdue, rank);
    case control::FrameType::kFaultDone:
      return OnFaultDone(rank, payload);
    case control::FrameType::kFromCompanion:
      return Push(FleetEventKind::kCompanion, rank, 0, 0, control::Message{0, payload});
    case control::FrameType::kMeetingPut:
    case control::FrameType::kMeetingGet:
      return OnMeeting(rank, type, payload);
    case control::FrameType::kStarted:
    case control::FrameType::kEvidence:
    case control::FrameType::kJournalRead:
    case control::FrameType::kGpusRead:
    case control::FrameType::kEnded:
      return OnAnswer(member, type, payload);
    case control::FrameType::kClockTold:
      return OnClockTold(member, decoder);
    case control::FrameType::kLog:
      return OnLog(payload);
    case control::FrameType::kDismissed:
    case control::FrameType::kBeat:
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

void FleetImpl::ReadMember(int rank) {
  FleetMember& member = members_[static_cast<std::size_t>(rank)];
  member.channel->Flush();
  member.channel->Fill();
  while (std::optional<control::Frame> frame = member.channel->Take()) {
    member.heard_ns = vigil_->Turn(MonotonicNs());
    member.suspected = verdict::Loss::kNone;
    OnReport(rank, static_cast<control::FrameType>(frame->type), frame->payload);
    if (member.lost) return;
  }
  if (!member.channel->open()) Lose(rank, control::LossOf(*member.channel));
}

void FleetImpl::PollOnce(Deadline deadline) {
  std::vector<pollfd> items{{signals_.fd(), POLLIN, 0},
                            {agent_.channel_fd(), agent_.poll_events(), 0},
                            {agent_.companion_fd(), POLLIN, 0},
                            {launcher_.fd(), POLLIN, 0}};
  const std::size_t before = items.size();
  for (const FleetMember& member : members_) {
    if (!member.channel) continue;
    items.push_back({member.lost ? -1 : member.channel->fd(), member.channel->poll_events(), 0});
  }
  const int most_ms = deadline.RemainingMs();
  const int wake_ms = agent_.wake_ms();
  const int most_wake_ms = std::min(most_ms, vigil_->wake_ms());
  poll(items.data(), items.size(), wake_ms < 0 ? most_wake_ms : std::min(wake_ms, most_wake_ms));
  const control::Signals::Arrived arrived = signals_.Take();
  if (arrived.end != 0) {
    terminating_ = true;
    events_.push_front(FleetEvent{FleetEventKind::kTerminate, 0, {}, 0, arrived.end});
  }
  if (arrived.warned) Push(FleetEventKind::kWarned, 0);
  if (items[3].revents != 0) {
    launcher_.OnGone();
    OnLauncherGone(0);
  }
  if (items[1].revents != 0) agent_.OnChannel();
  if (items[2].revents != 0) agent_.OnCompanion();
  if (arrived.child) agent_.OnChildChange();
  agent_.Watch();
  for (int rank = 1; rank < size(); ++rank) {
    FleetMember& member = members_[static_cast<std::size_t>(rank)];
    if (member.lost) continue;
    // A channel can also have been closed by an order that it could not take.
    if (items[static_cast<std::size_t>(rank) + before - 1].revents != 0 ||
        !member.channel->open()) {
      ReadMember(rank);
    }
  }
  KeepVigil();
}

bool FleetImpl::AwaitMembers(Deadline deadline,
                             const std::function<bool(const FleetMember&)>& done) {
  const Deadline hurried = Deadline::AfterSeconds(kHurrySeconds);
  while (true) {
    const bool all = std::all_of(members_.begin(), members_.end(), [&](const FleetMember& member) {
      return member.lost || done(member);
    });
    if (all) return true;
    // Told to end, there is about a second left in all before the launcher kills.
    if (terminating_) deadline = deadline.Earlier(hurried);
    if (deadline.Passed()) return false;
    PollOnce(deadline);
  }
}

void FleetImpl::OnFaultDone(int rank, const std::string& payload) {
  control::Decoder decoder(payload);
  FleetEvent event;
  event.kind = FleetEventKind::kFault;
  event.rank = rank;
  event.message.type = decoder.Get<std::uint32_t>();
  event.news = static_cast<control::FaultNews>(decoder.Get<std::uint8_t>());
  event.message.payload = decoder.Text();
  if (decoder.ok()) events_.push_back(std::move(event));
}

void FleetImpl::Send(int rank, const control::Message& message) {
  LOCKSTEP_CHECK(message.type < control::kReservedMessageType, "a reserved message type");
  LOCKSTEP_CHECK(message.payload.size() <= control::kMaxPayloadBytes, "the message is too large");
  Order(rank, control::FrameType::kToWorker, control::EncodeMessage(message));
}

void FleetImpl::SendAll(const control::Message& message) {
  for (int rank = size() - 1; rank >= 0; --rank) Send(rank, message);
}

// Slurm, systemd and others signal every process of a job, so that workers and agents can end of
// what their coordinator is about to hear. That is no fault of theirs: kTerminate is told first.
void FleetImpl::AwaitOwnSignal(const FleetEvent& event) {
  FleetMember& member = members_[static_cast<std::size_t>(event.rank)];
  const bool ends = event.signal == SIGTERM || event.signal == SIGINT || event.signal == SIGHUP;
  const bool of_worker =
      event.kind == FleetEventKind::kSignalled && ends && event.signal != member.sent_signal;
  const bool of_agent = event.kind == FleetEventKind::kLost && member.loss == verdict::Loss::kTold;
  if (!of_worker && !of_agent) return;
  // Once for all ranks of a lifetime.
  if (!own_signal_by_) own_signal_by_ = Deadline::AfterSeconds(kOwnSignalSeconds);
  while (!terminating_ && !own_signal_by_->Passed()) PollOnce(*own_signal_by_);
  member.told_alone = member.told_alone || (of_agent && !terminating_);
}

FleetEvent FleetImpl::Next(Deadline deadline) {
  // Also when events wait: what is sent must go out, and a signal to end comes first.
  PollOnce(events_.empty() ? deadline : Deadline::AfterNs(0));
  while (events_.empty()) {
    if (deadline.Passed()) return FleetEvent{};
    PollOnce(deadline);
  }
  if (events_.front().rank >= 0) AwaitOwnSignal(events_.front());
  FleetEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void FleetImpl::Signal(int rank, int signal) {
  members_[static_cast<std::size_t>(rank)].sent_signal = signal;
  Order(rank, control::FrameType::kSignal, control::Encoder().Put(std::int32_t{signal}).Take());
}

void FleetImpl::Inject(int rank, std::uint32_t fault, const control::AgentFault& order) {
  control::Encoder encoder;
  encoder.Put(fault);
  Put(encoder, order);
  Order(rank, control::FrameType::kFault, encoder.Take());
}

std::vector<verdict::RankEvidence> FleetImpl::Ask(Deadline deadline, bool system) {
  const std::uint64_t request = ++request_;
  // Some of the time is left for the answers' way.
  const std::int64_t budget_ns = std::max<std::int64_t>(deadline.RemainingNs() * 3 / 4, 0);
  OrderAll(
      control::FrameType::kCollect,
      control::Encoder().Put(request).Put(budget_ns).Put(static_cast<std::uint8_t>(system)).Take());
  AwaitMembers(deadline, [&](const FleetMember& m) { return m.answered >= request; });
  std::vector<verdict::RankEvidence> all;
  for (int rank = 0; rank < size(); ++rank) {
    FleetMember& member = members_[static_cast<std::size_t>(rank)];
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

std::vector<journal::Journal> FleetImpl::Journals(std::size_t most, Deadline deadline) {
  const std::uint64_t request = ++request_;
  OrderAll(control::FrameType::kJournal,
           control::Encoder().Put(request).Put(static_cast<std::uint64_t>(most)).Take());
  AwaitMembers(deadline, [&](const FleetMember& m) { return m.answered >= request; });
  std::vector<journal::Journal> all;
  for (FleetMember& member : members_) {
    all.push_back(!member.lost && member.answered >= request ? std::move(member.journal)
                                                             : journal::Journal());
  }
  return all;
}

// Agents drain the outbox before they read the journal.
std::vector<FleetEvent> FleetImpl::TakeData(Deadline deadline) {
  Journals(0, deadline);
  std::vector<FleetEvent> data;
  for (FleetEvent& event : std::exchange(events_, {})) {
    if (event.kind == FleetEventKind::kData) {
      data.push_back(std::move(event));
    } else {
      events_.push_back(std::move(event));
    }
  }
  return data;
}

Result<std::unique_ptr<Fleet>> Fleet::Open(const control::LaunchContext& context,
                                           const FleetOptions& options) {
  LOCKSTEP_CHECK(context.rank == 0, "only rank 0 opens the fleet; the others follow");
  auto fleet = std::make_unique<FleetImpl>(context, options);
  LOCKSTEP_RETURN_IF_ERROR(fleet->Meet());
  return std::unique_ptr<Fleet>(std::move(fleet));
}

}  // namespace lockstep::coordinator
