// Orphans go through the candidates in order. They give what they know to the first that welcomes
// them (Give). If none before them lives, they gather what the others give (Gather). Each wait is
// bounded, and shorter once a signal to end has come.
#include "core/coordinator/failover.h"

#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/process_stat.h"
#include "core/control/frames.h"
#include "core/control/machine.h"
#include "core/control/rendezvous/endpoint.h"
#include "core/control/tcp.h"

namespace lockstep::coordinator {
namespace {

constexpr double kConnectSeconds = 1;
// Silence is noticed by each in its turn, and whoever has noticed a loss ends its worker first.
constexpr double kLeastWelcomeSeconds = 6;
constexpr double kGiveSeconds = 60;
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

bool IsSilence(Loss loss) {
  return loss == Loss::kCutOff || loss == Loss::kDeaf || loss == Loss::kReset;
}

RankEvidence Unheard(int rank) {
  RankEvidence evidence;
  evidence.rank = rank;
  evidence.state = verdict::ProcessState::kLost;
  evidence.system = "its agent does not answer";
  return evidence;
}

}  // namespace

Loss SilenceOf(const Channel& channel) {
  return channel.open() && control::AllAcknowledged(channel.fd()) ? Loss::kDeaf : Loss::kCutOff;
}

bool PeerRuns(const Channel& channel) {
  // Of a unix socket: who listened where we connected.
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(channel.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  const std::optional<ProcessStat> stat = peer.pid > 0 ? StatOf(peer.pid) : std::nullopt;
  return stat && (stat->state == 'R' || stat->state == 'S' || stat->state == 'D');
}

Failover::Failover(const LaunchContext& context, const control::Roster& roster, std::string secret,
                   control::rendezvous::JoinServer* server, control::Signals& signals, Loss loss,
                   double hurry_seconds, bool told)
    : context_(context),
      roster_(roster),
      secret_(std::move(secret)),
      join_server_(server),
      signals_(signals),
      loss_(loss),
      hurry_seconds_(hurry_seconds) {
  if (told) hurried_ = Deadline::AfterSeconds(hurry_seconds_);
}

bool Failover::Hurried() {
  if (signals_.Take().end != 0 && !hurried_) hurried_ = Deadline::AfterSeconds(hurry_seconds_);
  return hurried_.has_value();
}

// A third of what is left at most, when there is little left.
Deadline Failover::Within(double seconds) {
  if (!Hurried()) return Deadline::AfterSeconds(seconds);
  return Deadline::AfterSeconds(std::min(
      seconds, static_cast<double>(std::max<std::int64_t>(hurried_->RemainingNs(), 0)) / 3e9));
}

// Its kernel took the connection: whether it lives, only silence beyond the bound tells.
double Failover::WelcomeSeconds() const {
  return std::max(kLeastWelcomeSeconds, roster_.lost_seconds);
}

Loss Failover::Try(const Contact& candidate, std::optional<Channel>& channel) {
  bool refused = false;
  const Result<Fd> reached = control::rendezvous::ConnectTo(
      {candidate.address, candidate.port, secret_}, Within(kConnectSeconds), &refused);
  // A successor that is done is gone, too: in time, if the launch is being ended.
  const bool here = candidate.host == control::HostName();
  const Loss gone = Hurried() ? Loss::kGone : here ? Loss::kClosed : Loss::kReset;
  if (!reached.ok()) return refused ? gone : Loss::kCutOff;
  const Deadline welcome = Within(WelcomeSeconds());
  Result<Channel> joined =
      control::rendezvous::Join({candidate.address, candidate.port, secret_},
                                control::DescribeAgent(context_.rank), nullptr, welcome);
  if (!joined.ok()) return welcome.Passed() ? Loss::kDeaf : gone;
  channel.emplace(std::move(joined).value());
  return Loss::kNone;
}

std::optional<Channel> Failover::FindSuccessor() {
  std::set<std::string> silent_hosts;
  for (const Contact& candidate : roster_.candidates) {
    if (candidate.rank >= context_.rank) break;
    if (silent_hosts.contains(candidate.host)) {
      lost_[candidate.rank] = Loss::kCutOff;
      continue;
    }
    std::optional<Channel> channel;
    const Loss loss = Try(candidate, channel);
    if (channel) return channel;
    lost_[candidate.rank] = loss;
    if (loss == Loss::kCutOff) silent_hosts.insert(candidate.host);
  }
  return std::nullopt;
}

ExitCode CodeOfDismissal(const std::string& payload) {
  const auto dismissal = control::Decode<control::DismissOrder>(payload);
  LOCKSTEP_CHECK(dismissal.has_value(), "the exit code of the launch");
  return static_cast<ExitCode>(dismissal->value);
}

ExitCode Failover::Give(Channel& channel, const FailoverPart& own) {
  channel.Send(
      control::FailoverFrame{own.lifetime, loss_, own.evidence, own.journal, own.data_cut});
  bool whole = true;
  for (std::size_t at = 0; whole && at < own.data.size(); at += kPieceBytes) {
    channel.Send(FrameType::kData, std::string_view(own.data).substr(at, kPieceBytes));
    whole = channel.FlushUntil(Within(kGiveSeconds));
  }
  if (whole) channel.Send(FrameType::kFailoverEnd);
  const Deadline deadline = Deadline::AfterSeconds(kGiveSeconds);
  // Until the successor is done, or gone: the launcher should see its end first. One that says
  // nothing may still save, and no exit code of ours is to have it killed.
  ExitCode code = ExitCode::kPass;
  while (channel.open() && !deadline.Passed()) {
    channel.MoveOn(deadline);
    while (const std::optional<control::Frame> frame = channel.Take()) {
      if (frame->is(FrameType::kDismiss)) code = CodeOfDismissal(frame->payload);
    }
  }
  return code;
}

std::size_t Failover::Expected() const {
  const auto others = static_cast<std::size_t>(context_.size) - 2;
  return others - std::min(others, lost_.size());
}

void Failover::Hear(control::rendezvous::JoinRequest& request, FailoverReport& failover,
                    Deadline deadline) {
  const auto rank = static_cast<std::size_t>(request.info.rank);
  bool cut = true;
  while (true) {
    while (const std::optional<control::Frame> frame = request.channel.Take()) {
      if (frame->is(FrameType::kFailoverEnd)) {
        failover.data_cut[rank] = cut;
        return;
      }
      if (frame->is(FrameType::kData)) failover.data[rank] += frame->payload;
      if (!frame->is(FrameType::kFailoverPart)) continue;
      auto part = control::Decode<control::FailoverFrame>(frame->payload);
      if (!part) return;
      // One end that was seen explains all connections that were reset.
      if (loss_ == Loss::kReset && part->loss == Loss::kClosed) {
        loss_ = part->loss;
      }
      cut = part->data_cut;
      part->evidence.rank = request.info.rank;
      failover.lifetime = std::max<int>(failover.lifetime, part->lifetime);
      failover.evidence[rank] = std::move(part->evidence);
      failover.journals[rank] = std::move(part->journal);
    }
    if (!request.channel.open() || deadline.Passed()) return;
    request.channel.MoveOn(deadline);
  }
}

// As we saw it ourselves, else as of another rank of the same host; but where an agent of that host
// lives, what befell one says nothing of another that did not come.
Loss Failover::LossOn(int rank, const FailoverReport& failover) const {
  const auto host = [&](int one) { return failover.agents[static_cast<std::size_t>(one)].host; };
  if (rank == 0) return loss_;
  if (const auto known = lost_.find(rank); known != lost_.end()) return known->second;
  const bool lives = std::ranges::any_of(failover.evidence, [&](const RankEvidence& other) {
    return other.state != verdict::ProcessState::kLost && host(other.rank) == host(rank);
  });
  if (lives || host(rank).empty()) return Loss::kCutOff;
  if (host(rank) == host(0)) return loss_;
  for (const auto& [other, loss] : lost_) {
    if (host(other) == host(rank)) return loss;
  }
  return Loss::kCutOff;
}

// Who is lost, and whether this is the larger part of the launch.
void Failover::Conclude(FailoverReport& failover,
                        const std::vector<control::rendezvous::JoinRequest>& requests) const {
  for (int rank = 0; rank < context_.size; ++rank) {
    verdict::RankPlace& place = failover.places[static_cast<std::size_t>(rank)];
    place.host = failover.agents[static_cast<std::size_t>(rank)].host;
    if (failover.evidence[static_cast<std::size_t>(rank)].state != verdict::ProcessState::kLost)
      continue;
    place.loss = LossOn(rank, failover);
    place.assumed = rank != 0 && !lost_.contains(rank) && place.loss != Loss::kCutOff;
  }
  const std::size_t heard = requests.size() + 1;
  const bool larger = 2 * heard > static_cast<std::size_t>(context_.size);
  // A coordinator that was told to end wrote what it knew, which is more than we know.
  failover.whole = !requests.empty() && loss_ != Loss::kGone &&
                   (!IsSilence(loss_) || larger || loss_ == Loss::kDeaf);
}

FailoverReport Failover::Gather(FailoverPart own,
                                std::vector<control::rendezvous::JoinRequest>& requests) {
  FailoverReport failover;
  const auto size = static_cast<std::size_t>(context_.size);
  failover.successor = context_.rank;
  failover.agents = roster_.agents;
  // An agent that is no candidate, and alone, knows of nobody.
  if (failover.agents.size() != size) {
    AgentInfo unknown;
    if (context_.single_host()) unknown.host = control::HostName();
    failover.agents.assign(size, unknown);
  }
  failover.places.resize(size);
  failover.journals.resize(size);
  failover.data.resize(size);
  failover.data_cut.assign(size, true);
  for (int rank = 0; rank < context_.size; ++rank) {
    failover.agents[static_cast<std::size_t>(rank)].rank = rank;
    failover.evidence.push_back(Unheard(rank));
  }
  const auto self = static_cast<std::size_t>(context_.rank);
  failover.lifetime = own.lifetime;
  failover.evidence[self] = std::move(own.evidence);
  failover.journals[self] = std::move(own.journal);
  failover.data[self] = std::move(own.data);
  failover.data_cut[self] = own.data_cut;
  failover.replicated = std::move(own.replicated);
  failover.agents[self] = control::DescribeAgent(context_.rank);
  for (control::rendezvous::JoinRequest& request : requests)
    Hear(request, failover, Within(kGiveSeconds));
  Conclude(failover, requests);
  return failover;
}

ExitCode Failover::Run(FailoverPart own,
                       const std::function<ExitCode(const FailoverReport&)>& on_failover) {
  if (std::optional<Channel> successor = FindSuccessor()) return Give(*successor, own);
  std::vector<control::rendezvous::JoinRequest> requests;
  const bool candidate = std::ranges::any_of(
      roster_.candidates, [&](const Contact& contact) { return contact.rank == context_.rank; });
  if (candidate && join_server_ != nullptr && Expected() > 0) {
    requests = join_server_->GatherSome(signals_, Within(1 + WelcomeSeconds()), Expected(),
                                        hurry_seconds_ / 3);
  }
  const FailoverReport failover = Gather(std::move(own), requests);
  if (!on_failover) return ExitCode::kEnvironment;
  const ExitCode code = on_failover(failover);
  for (control::rendezvous::JoinRequest& request : requests) {
    request.channel.Send(control::DismissOrder{static_cast<std::int32_t>(code)});
    request.channel.FlushUntil(Within(kGiveSeconds));
  }
  return code;
}

}  // namespace lockstep::coordinator
