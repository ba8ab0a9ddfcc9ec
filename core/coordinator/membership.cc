// The connections of the coordinator: to its own rank's agent, which lives in this process, and to
// all others, over channels. One loop (PollOnce) reads what comes, tells others of each report, and
// keeps the rhythm of heartbeats. How an agent was lost is told by how its channel closed, by its
// own last word, or by its silence (core/verdict/lost_hosts.h).
#include "core/coordinator/membership.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/control/machine.h"
#include "core/control/tcp.h"
#include "core/coordinator/failover.h"
#include "core/coordinator/kill_seconds.h"
#include "core/coordinator/meet.h"

namespace lockstep::coordinator {
namespace {

// Of the time between SIGTERM and SIGKILL, for one question: a few are asked, and a file is
// written.
constexpr double kAnswerShare = 0.3;
constexpr double kDismissSeconds = 2;
constexpr double kRestSeconds = 600;
// For a file on a busy disk; not longer, because a coordinator that is stopped then is noticed
// late.
constexpr double kBusyBounds = 3;
constexpr std::int64_t kLateNs = 500'000'000;

}  // namespace

Event EventQueue::Take() {
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::vector<Event> EventQueue::TakeData() {
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

void EventQueue::DropWorker(int rank) {
  std::erase_if(events_, [&](const Event& event) {
    return event.rank == rank && event.kind != EventKind::kLost &&
           event.kind != EventKind::kTerminate;
  });
}

Membership::Membership(const LaunchContext& context, const CoordinatorOptions& options,
                       EventQueue& events, Report report)
    : context_(context),
      options_(options),
      events_(events),
      report_(std::move(report)),
      launcher_(context),
      agent_(context, options,
             [this](FrameType type, std::string payload) { OnReport(0, type, payload); }),
      members_(static_cast<std::size_t>(context.size)) {}

Status Membership::Meet() {
  LOCKSTEP_ASSIGN_OR_RETURN(const double lost_seconds,
                            control::LostSecondsFrom(std::getenv("LOCKSTEP_LOST_SECONDS")));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<control::rendezvous::JoinRequest> requests,
                            MeetFollowers(context_, options_, agent_, signals_));
  agents_.push_back(control::DescribeAgent(0));
  std::vector<Contact> contacts;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    agents_.push_back(std::move(requests[i].info));
    members_[i + 1].channel = std::move(requests[i].channel);
    control::SetTcpOptions(members_[i + 1].channel->fd(), lost_seconds);
    contacts.push_back(std::move(requests[i].contact));
  }
  heartbeats_.emplace(lost_seconds, MonotonicNs());
  SendRoster(contacts);
  return OkStatus();
}

void Membership::SendRoster(const std::vector<Contact>& contacts) {
  control::Roster roster = {heartbeats_->lost_seconds(), agents_,
                            control::ChooseCandidates(contacts)};
  const std::string with_agents = control::Encode(roster);
  roster.agents.clear();
  const std::string without = control::Encode(roster);
  for (int rank = 1; rank < size(); ++rank) {
    const bool candidate = std::ranges::any_of(
        roster.candidates, [rank](const Contact& contact) { return contact.rank == rank; });
    Order(rank, FrameType::kRoster, candidate ? with_agents : without);
    if (candidate) candidates_.push_back(rank);
  }
}

void Membership::Order(int rank, FrameType type, const std::string& payload) {
  if (rank == 0) {
    agent_.Obey(control::Frame{control::Number(type), payload});
  } else if (!At(rank).lost) {
    At(rank).channel->Send(type, payload);
  }
}

void Membership::OrderAll(FrameType type, const std::string& payload) {
  for (int rank = size() - 1; rank >= 0; --rank) Order(rank, type, payload);
}

void Membership::OnReport(int rank, FrameType type, const std::string& payload) {
  switch (type) {
    case FrameType::kDismissed:
    case FrameType::kHeartbeat:
      return;
    case FrameType::kLauncherGone:
      return OnLauncherGone(rank);
    case FrameType::kToldToEnd:
      return OnToldToEnd(rank);
    case FrameType::kTakenForLost:
      return Lose(rank, Loss::kLeft);
    default:
      if (report_(rank, type, payload)) return;
      LOCKSTEP_CHECK(rank != 0, "our own agent made a report of an unknown type");
      Lose(rank, Loss::kCutOff);  // we close: that proves no end
  }
}

void Membership::ReadMember(int rank) {
  Member& member = At(rank);
  member.channel->Flush();
  member.channel->Fill();
  while (std::optional<control::Frame> frame = member.channel->Take()) {
    member.heard_ns = heartbeats_->Turn(MonotonicNs());
    member.suspected = Loss::kNone;
    OnReport(rank, static_cast<FrameType>(frame->type), frame->payload);
    if (member.lost) return;
  }
  if (!member.channel->open()) Lose(rank, control::LossOf(*member.channel));
}

void Membership::ReadMembers(const pollfd* items) {
  for (int rank = 1; rank < size(); ++rank) {
    if (At(rank).lost) continue;
    // A channel can also have been closed by an order that it could not take.
    if (items[rank - 1].revents != 0 || !At(rank).channel->open()) ReadMember(rank);
  }
}

void Membership::PollOnce(Deadline deadline) {
  std::vector<pollfd> items{{signals_.fd(), POLLIN, 0},
                            {agent_.channel_fd(), agent_.poll_events(), 0},
                            {agent_.plugin_fd(), POLLIN, 0},
                            {launcher_.fd(), POLLIN, 0}};
  const std::size_t before = items.size();
  for (const Member& member : members_) {
    if (!member.channel) continue;
    items.push_back({member.lost ? -1 : member.channel->fd(), member.channel->poll_events(), 0});
  }
  const int most_ms = std::min(deadline.RemainingMs(), heartbeats_->wake_ms());
  const int wake_ms = agent_.wake_ms();
  const int longest_ms = wake_ms < 0 ? most_ms : std::min(wake_ms, most_ms);
  const std::int64_t began_ns = MonotonicNs();
  if (std::exchange(busy_, false)) {
    heartbeats_->PassOver(began_ns, (kBusyBounds - 1) * heartbeats_->lost_seconds());
  }
  if (polled_ns_ != 0) NoteWait(began_ns - polled_ns_);
  poll(items.data(), items.size(), longest_ms);
  polled_ns_ = MonotonicNs();
  NoteWait(polled_ns_ - began_ns - std::int64_t{longest_ms} * 1'000'000);
  const control::Signals::Arrived arrived = signals_.Take();
  if (arrived.end != 0) {
    terminating_ = true;
    events_.PushTerminate(arrived.end);
  }
  if (arrived.warned) events_.Push(EventKind::kWarned, 0);
  if (items[3].revents != 0) {
    launcher_.OnGone();
    OnLauncherGone(0);
  }
  if (items[1].revents != 0) agent_.OnChannel();
  if (items[2].revents != 0) agent_.OnPlugin();
  if (arrived.child) agent_.OnChildChange();
  agent_.Watch();
  ReadMembers(items.data() + before);
  KeepHeartbeats();
}

bool Membership::Await(Deadline deadline, const std::function<bool(int rank)>& done) {
  const Deadline hurried = Deadline::AfterSeconds(kAnswerShare * KillSeconds());
  const auto over = [&](int rank) { return At(rank).lost || done(rank); };
  while (!std::ranges::all_of(ranks(), over)) {
    // Told to end, there is little time left before the launcher kills.
    if (terminating_) deadline = deadline.Earlier(hurried);
    if (deadline.Passed()) return false;
    PollOnce(deadline);
  }
  return true;
}

void Membership::AwaitAnswers(std::uint64_t request, std::optional<int> only) {
  const auto answered = [&](int rank) {
    return rank != only.value_or(rank) || At(rank).answered >= request;
  };
  // Each is lost before, or answers; a bound of the wait all the same.
  Await(Deadline::AfterSeconds(3 * heartbeats_->lost_seconds()), answered);
}

void Membership::NoteWait(std::int64_t ns) {
  if (ns > kLateNs) late_ns_ = MonotonicNs();
}

double Membership::SecondsAwake() const {
  if (!late_ns_) return std::numeric_limits<double>::infinity();
  return SecondsSince(*late_ns_);
}

void Membership::Suspect(int rank) {
  if (rank == 0 || At(rank).lost) return;
  if (!heartbeats_->IsOverdue(At(rank).heard_ns, heartbeats_->Turn(MonotonicNs()))) return;
  At(rank).suspected = SilenceOf(*At(rank).channel);
}

void Membership::Lose(int rank, Loss loss) {
  Member& member = At(rank);
  if (member.lost) return;
  member.lost = true;
  // Who left while we were stopped may have had no way to say so.
  if ((loss == Loss::kClosed || loss == Loss::kReset) && heartbeats_->overslept())
    loss = Loss::kLeft;
  if (member.loss == Loss::kNone) member.loss = loss;
  member.channel->Close();
  events_.Push(EventKind::kLost, rank);
}

void Membership::LoseSilent(int rank) {
  if (rank == 0 || At(rank).lost) return;
  const Loss loss = SilenceOf(*At(rank).channel);
  // Once it hears again it knows why we closed: we live.
  Order(rank, FrameType::kTakenForLost);
  Lose(rank, loss);
}

// Its agent lives, and can be asked: but the launcher will end all of us, or has done so.
void Membership::OnLauncherGone(int rank) {
  if (At(rank).loss != Loss::kNone) return;
  At(rank).loss = Loss::kLauncher;
  events_.Push(EventKind::kLost, rank);
  if (rank != 0) return;
  terminating_ = true;
  events_.PushTerminate(0);
}

// Its agent lives for a moment, and can be asked until then.
void Membership::OnToldToEnd(int rank) {
  if (At(rank).loss != Loss::kNone) return;
  At(rank).loss = Loss::kTold;
  events_.Push(EventKind::kLost, rank);
}

void Membership::KeepHeartbeats() {
  const std::int64_t awake_ns = heartbeats_->Turn(MonotonicNs());
  if (heartbeats_->TakeHeartbeat(awake_ns)) {
    for (int rank = 1; rank < size(); ++rank) Order(rank, FrameType::kHeartbeat);
  }
  for (int rank = 1; rank < size(); ++rank) {
    if (heartbeats_->IsLost(At(rank).heard_ns, awake_ns)) LoseSilent(rank);
  }
}

std::vector<verdict::RankPlace> Membership::places() const {
  std::vector<verdict::RankPlace> places;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    Loss loss = member.loss != Loss::kNone ? member.loss : member.suspected;
    // A launch that is told to end as a whole loses nobody by that.
    if (loss == Loss::kTold && terminating_ && !member.told_alone) loss = Loss::kNone;
    places.push_back({agents_[rank].host, loss});
  }
  return places;
}

void Membership::Replicate(const std::string& record) {
  for (const int rank : candidates_) Order(rank, FrameType::kReplicated, record);
}

void Membership::TellBusy() {
  busy_ = true;
  OrderRest(kBusyBounds * heartbeats_->lost_seconds());
}

void Membership::Rest() { OrderRest(kRestSeconds); }

void Membership::OrderRest(double seconds) {
  for (int rank = 1; rank < size(); ++rank) Order(rank, control::RestOrder{seconds});
}

void Membership::Dismiss(ExitCode code) {
  agent_.End();
  for (int rank = 1; rank < size(); ++rank) {
    Order(rank, control::DismissOrder{static_cast<std::int32_t>(code)});
  }
  const Deadline deadline = Deadline::AfterSeconds(kDismissSeconds);
  for (Member& member : members_) {
    // Each answers kDismissed, then waits for our channel to close.
    while (member.channel && !member.lost && member.channel->open() && !deadline.Passed()) {
      member.channel->MoveOn(deadline);
      bool gone = false;
      while (const std::optional<control::Frame> frame = member.channel->Take()) {
        gone = gone || frame->is(FrameType::kDismissed);
      }
      if (gone) break;
    }
  }
  // The end of this process closes them, not that of this object: destructors take time, and the
  // launcher should see our exit first.
  static auto& left_open = *new std::vector<control::Channel>;
  for (Member& member : members_) {
    if (member.channel) left_open.push_back(std::move(*member.channel));
  }
}

}  // namespace lockstep::coordinator
