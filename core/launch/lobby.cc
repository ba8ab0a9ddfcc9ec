#include "core/launch/lobby.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/launch/codec.h"
#include "core/launch/protocol.h"
#include "core/launch/tcp.h"

namespace lockstep {
namespace {

constexpr std::uint32_t Number(FrameType type) { return static_cast<std::uint32_t>(type); }
// A stranger may hold a place so long, and so many may.
constexpr double kHelloSeconds = 5;
constexpr std::size_t kMostStrangers = 64;

std::string NewSecret() {
  std::string secret(kSecretBytes, '\0');
  LOCKSTEP_CHECK(getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(kSecretBytes),
                 std::strerror(errno));
  return secret;
}

}  // namespace

std::string EncodeInvitation(const Invitation& invitation) {
  return Encoder().Text(invitation.address).Put(invitation.port).Text(invitation.secret).Take();
}

std::optional<Invitation> DecodeInvitation(std::string_view bytes) {
  Decoder decoder(bytes);
  Invitation invitation;
  invitation.address = decoder.Text();
  invitation.port = decoder.Get<std::uint16_t>();
  invitation.secret = decoder.Text();
  if (!decoder.complete() || invitation.secret.size() != kSecretBytes) return std::nullopt;
  return invitation;
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

Result<std::unique_ptr<Lobby>> Lobby::Listen(const std::string& address, int followers,
                                             const std::string& secret) {
  std::unique_ptr<Lobby> lobby(new Lobby(followers));
  lobby->invitation_.address = address;
  lobby->invitation_.secret = secret.empty() ? NewSecret() : secret;
  LOCKSTEP_ASSIGN_OR_RETURN(lobby->listener_, ListenTcp(address, lobby->invitation_.port));
  return lobby;
}

void Lobby::AcceptAll() {
  while (pending_.size() < guests_.size() + kMostStrangers) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    SetTcpOptions(fd.get());
    pending_.push_back(
        {Channel(std::move(fd), kMostHelloBytes), Deadline::AfterSeconds(kHelloSeconds)});
  }
}

bool Lobby::Hear(Pending& pending) {
  pending.channel.Fill();
  const std::optional<Frame> frame = pending.channel.Take();
  if (!frame) return !pending.channel.open() || pending.deadline.Passed();
  Decoder decoder(frame->payload);
  const auto version = decoder.Get<std::uint32_t>();
  const std::string_view secret = decoder.Raw(kSecretBytes);
  if (frame->type != Number(FrameType::kHello) || !decoder.ok() || version != kProtocolVersion ||
      !SameSecret(secret, invitation_.secret)) {
    return true;
  }
  AgentInfo info;
  Contact contact;
  if (!Get(decoder, info) || info.rank < 1 || info.rank > static_cast<int>(guests_.size())) {
    return true;
  }
  contact = {info.rank, info.host, decoder.Text(), decoder.Get<std::uint16_t>()};
  std::optional<Guest>& place = guests_[static_cast<std::size_t>(info.rank - 1)];
  if (place) return true;
  pending.channel.set_most_payload_bytes(kMostFrameBytes);
  pending.channel.Send(Number(FrameType::kWelcome), {});
  place.emplace(Guest{info, std::move(contact), std::move(pending.channel)});
  return true;
}

void Lobby::HearPending() {
  for (std::size_t i = 0; i < pending_.size();) {
    if (Hear(pending_[i])) {
      std::swap(pending_[i], pending_.back());
      pending_.pop_back();
    } else {
      ++i;
    }
  }
}

std::string Lobby::Missing() const {
  constexpr int kMostNamed = 8;
  std::string text;
  int missing = 0;
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    if (guests_[i]) continue;
    if (++missing <= kMostNamed) text += fmt::format("{}{}", text.empty() ? "" : ", ", i + 1);
  }
  if (missing > kMostNamed) text += fmt::format(" and {} more", missing - kMostNamed);
  return text;
}

void Lobby::PollOnce(Door* door, Signals& signals, Deadline deadline) {
  std::vector<pollfd> items{{signals.fd(), POLLIN, 0}};
  // When strangers hold all places, new ones wait in the kernel's queue until some are dropped.
  const bool room = pending_.size() < guests_.size() + kMostStrangers;
  items.push_back({room ? listener_.get() : -1, POLLIN, 0});
  items.push_back({door ? door->fd() : -1, POLLIN, 0});
  for (Pending& pending : pending_) items.push_back({pending.channel.fd(), POLLIN, 0});
  // Silent strangers are dropped in time.
  const Deadline soon = Deadline::AfterSeconds(0.25);
  const Deadline next = pending_.empty() ? deadline : deadline.Earlier(soon);
  poll(items.data(), items.size(), next.RemainingMs());
  if (door) door->Serve();
  AcceptAll();
  HearPending();
}

std::vector<Lobby::Guest> Lobby::GatherSome(Signals& signals, Deadline deadline, std::size_t enough,
                                            double hurry_seconds) {
  const auto came = [&] {
    return static_cast<std::size_t>(std::count_if(guests_.begin(), guests_.end(),
                                                  [](const auto& one) { return one.has_value(); }));
  };
  while (came() < enough && !deadline.Passed()) {
    PollOnce(nullptr, signals, deadline);
    if (signals.Take().end != 0) deadline = deadline.Earlier(Deadline::AfterSeconds(hurry_seconds));
  }
  std::vector<Guest> guests;
  for (std::optional<Guest>& guest : guests_) {
    if (guest) guests.push_back(*std::exchange(guest, std::nullopt));
  }
  return guests;
}

Result<std::vector<Lobby::Guest>> Lobby::Gather(Door* door, Signals& signals, Deadline deadline) {
  while (!Missing().empty()) {
    if (deadline.Passed()) {
      return EnvironmentError(
          fmt::format("rank {} did not join in time; see the messages of its "
                      "host, and check that it can reach {}",
                      Missing(), invitation_.address));
    }
    PollOnce(door, signals, deadline);
    if (const int number = signals.Take().end) {
      return Terminated(fmt::format("ended by signal {} before the agents met", number));
    }
  }
  std::vector<Guest> guests;
  for (std::optional<Guest>& guest : guests_) guests.push_back(*std::move(guest));
  return guests;
}

}  // namespace lockstep
