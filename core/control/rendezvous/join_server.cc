// Followers are admitted one by one, and welcomed together. Whoever is no follower costs a place in
// a bounded queue, and never time (join_server.h).
#include "core/control/rendezvous/join_server.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/control/frames.h"
#include "core/control/open_files.h"
#include "core/control/rendezvous/local_socket.h"
#include "core/control/tcp.h"

namespace lockstep::control::rendezvous {
namespace {

// So many may say nothing before the oldest of them is dropped.
constexpr std::size_t kMostStrangers = 64;
// At a time, so that those who speak are heard in between.
constexpr int kMostAccepted = 64;

}  // namespace

Result<std::unique_ptr<JoinServer>> JoinServer::Listen(const std::string& address, int followers,
                                                       const std::string& secret,
                                                       std::uint16_t port) {
  std::unique_ptr<JoinServer> server(new JoinServer(followers));
  Endpoint& own = server->endpoint_;
  own.address = address;
  own.port = port;
  own.secret = secret.empty() ? RandomBytes() : secret;
  LOCKSTEP_ASSIGN_OR_RETURN(server->listener_, IsLocal(address) ? ListenLocal(own.address)
                                                                : ListenTcp(own.address, own.port));
  return server;
}

void JoinServer::AddTo(std::vector<pollfd>& items) const {
  items.push_back({listener_.get(), POLLIN, 0});
  for (const Pending& pending : pending_) items.push_back({pending.channel.fd(), POLLIN, 0});
}

Status JoinServer::Serve() {
  std::erase_if(pending_, [this](Pending& pending) { return Hear(pending); });
  for (int accepted = 0; accepted < kMostAccepted; ++accepted) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() && errno == EAGAIN) break;
    if (!fd.valid() && IsOutOfFiles(errno)) {
      if (pending_.empty()) return OutOfFiles(static_cast<int>(requests_.size()));
      pending_.pop_front();
    }
    if (!fd.valid() || (IsLocal(endpoint_.address) && !PeerIsOurUser(fd.get()))) continue;
    SetTcpOptions(fd.get());
    // Most say hello as they come.
    Pending pending{Channel(std::move(fd), kMostHelloBytes), {}};
    if (!Hear(pending)) pending_.push_back(std::move(pending));
    if (pending_.size() > requests_.size() + kMostStrangers) pending_.pop_front();
  }
  return OkStatus();
}

bool JoinServer::Hear(Pending& pending) {
  pending.channel.Fill();
  while (const std::optional<Frame> frame = pending.channel.Take()) {
    if (!pending.nonces.follower.empty()) {
      Admit(*frame, pending);
      return true;
    }
    if (!Challenge(*frame, pending)) return true;
  }
  return !pending.channel.open();
}

bool JoinServer::Challenge(const Frame& frame, Pending& pending) {
  const std::optional<HelloFrame> hello = Decode<HelloFrame>(frame.payload);
  if (!frame.is(FrameType::kHello) || !hello) return false;
  if (hello->version != kProtocolVersion) {
    pending.channel.Send(FrameType::kRefused);
    return false;
  }
  pending.nonces = {hello->nonce, RandomBytes()};
  pending.channel.Send(ChallengeFrame{pending.nonces.coordinator,
                                      ProofOfCoordinator(endpoint_.secret, pending.nonces)});
  return true;
}

void JoinServer::Admit(const Frame& frame, Pending& pending) {
  const std::optional<JoinFrame> join = Decode<JoinFrame>(frame.payload);
  // Who gave up before it was heard comes again, on another channel.
  if (!pending.channel.open() || !frame.is(FrameType::kJoin) || !join ||
      !IsSameProof(join->proof, ProofOfFollower(endpoint_.secret, pending.nonces, join->request))) {
    return;
  }
  std::optional<JoinWords> words = Decode<JoinWords>(join->request);
  if (!words || words->info.rank < 1 || words->info.rank > static_cast<int>(requests_.size())) {
    return pending.channel.Send(FrameType::kRefused);
  }
  AgentInfo& info = words->info;
  Contact contact = {info.rank, info.host, words->address, words->port};
  std::optional<JoinRequest>& place = requests_[static_cast<std::size_t>(info.rank - 1)];
  // Who came before, and has left since, has come again.
  if (place) place->channel.Fill();
  if (place && place->channel.open()) return pending.channel.Send(FrameType::kRefused);
  pending.channel.set_most_payload_bytes(kMostFrameBytes);
  if (welcoming_) pending.channel.Send(FrameType::kWelcome);
  place.emplace(JoinRequest{std::move(info), std::move(contact), std::move(pending.channel)});
}

void JoinServer::Welcome() {
  welcoming_ = true;
  for (std::optional<JoinRequest>& request : requests_) {
    if (request) request->channel.Fill();
    // Who came early may have gone elsewhere.
    if (request && !request->channel.open()) request.reset();
    if (request) request->channel.Send(FrameType::kWelcome);
  }
}

std::string JoinServer::Missing() const {
  constexpr int kMostNamed = 8;
  std::string text;
  int missing = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i]) continue;
    if (++missing <= kMostNamed) text += fmt::format("{}{}", text.empty() ? "" : ", ", i + 1);
  }
  if (missing > kMostNamed) text += fmt::format(" and {} more", missing - kMostNamed);
  return text;
}

Status JoinServer::PollOnce(EndpointServer* endpoints, Signals& signals, Deadline deadline) {
  std::vector<pollfd> items{{signals.fd(), POLLIN, 0},
                            {endpoints ? endpoints->fd() : -1, POLLIN, 0}};
  AddTo(items);
  poll(items.data(), items.size(), deadline.RemainingMs());
  if (endpoints) LOCKSTEP_RETURN_IF_ERROR(endpoints->Serve());
  return Serve();
}

std::vector<JoinRequest> JoinServer::GatherSome(Signals& signals, Deadline deadline,
                                                std::size_t enough, double hurry_seconds) {
  const auto came = [&] {
    return static_cast<std::size_t>(
        std::ranges::count_if(requests_, [](const auto& one) { return one.has_value(); }));
  };
  Welcome();
  while (came() < enough && !deadline.Passed()) {
    if (!PollOnce(nullptr, signals, deadline).ok()) break;
    if (signals.Take().end != 0) deadline = deadline.Earlier(Deadline::AfterSeconds(hurry_seconds));
  }
  std::vector<JoinRequest> requests;
  for (std::optional<JoinRequest>& request : requests_) {
    if (request) requests.push_back(*std::exchange(request, std::nullopt));
  }
  return requests;
}

Result<std::vector<JoinRequest>> JoinServer::Gather(EndpointServer* endpoints, Signals& signals,
                                                    Deadline deadline) {
  Welcome();
  while (!Missing().empty()) {
    if (deadline.Passed()) {
      return EnvironmentError(
          "rank {} did not join in time; see the messages of its host, and check that it can reach "
          "{}",
          Missing(), endpoint_.address);
    }
    LOCKSTEP_RETURN_IF_ERROR(PollOnce(endpoints, signals, deadline));
    LOCKSTEP_RETURN_IF_ERROR(signals.TakeBeforeMeeting());
  }
  std::vector<JoinRequest> requests;
  for (std::optional<JoinRequest>& request : requests_) requests.push_back(*std::move(request));
  return requests;
}

}  // namespace lockstep::control::rendezvous
