// Both ends of the door, and how a follower joins.
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/launch/lobby.h"
#include "core/launch/protocol.h"
#include "core/launch/tcp.h"

namespace lockstep {
namespace {

struct UnixAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

// An abstract name (unix(7)): it is gone with its socket. The parent is the launcher's daemon,
// the same for all ranks of a host, if the launcher does not name its job.
UnixAddress DoorAddress(const LaunchContext& context) {
  const std::string job = context.job.empty() ? fmt::format("of-{}", getppid()) : context.job;
  std::string name = fmt::format("lockstep-{}-{}-{}", geteuid(), context.launcher, job);
  UnixAddress result;
  result.address.sun_family = AF_UNIX;
  name.resize(std::min(name.size(), sizeof result.address.sun_path - 1));
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

bool PeerIsOurUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

// Sleeps, unless a signal to end comes.
Status Pause(Signals& signals, double seconds) {
  pollfd item{signals.fd(), POLLIN, 0};
  poll(&item, 1, Deadline::AfterSeconds(seconds).RemainingMs());
  if (const int number = signals.Take().end) {
    return Terminated(fmt::format("ended by signal {} before the agents met", number));
  }
  return OkStatus();
}

// One knock: what the coordinator's door gave, or nothing (it is not there yet).
std::optional<Invitation> Knock(const UnixAddress& door) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval second{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&door.address), door.length) != 0 ||
      !PeerIsOurUser(fd.get())) {
    return std::nullopt;
  }
  char bytes[256];
  const ssize_t n = recv(fd.get(), bytes, sizeof bytes, 0);
  return n > 0 ? DecodeInvitation({bytes, static_cast<std::size_t>(n)}) : std::nullopt;
}

Status AwaitWelcome(Channel& channel, Signals* signals, Deadline deadline) {
  while (true) {
    if (const std::optional<Frame> frame = channel.Take()) {
      if (frame->type == static_cast<std::uint32_t>(FrameType::kWelcome)) return OkStatus();
      return EnvironmentError(
          "the coordinator speaks another protocol; all ranks must run the "
          "same program");
    }
    if (!channel.open()) {
      return EnvironmentError(
          "the coordinator (rank 0) is gone or did not admit this rank; see "
          "the messages of rank 0");
    }
    if (deadline.Passed()) {
      return EnvironmentError(
          "the coordinator (rank 0) did not answer in time; see the messages "
          "of rank 0");
    }
    pollfd items[] = {{channel.fd(), channel.poll_events(), 0},
                      {signals == nullptr ? -1 : signals->fd(), POLLIN, 0}};
    poll(items, 2, deadline.RemainingMs());
    if (const int number = signals == nullptr ? 0 : signals->Take().end) {
      return Terminated(fmt::format("ended by signal {} before the agents met", number));
    }
    channel.Flush();
    channel.Fill();
  }
}

}  // namespace

Result<std::unique_ptr<Door>> Door::Open(const LaunchContext& context,
                                         const Invitation& invitation) {
  auto door = std::make_unique<Door>();
  door->bytes_ = EncodeInvitation(invitation);
  door->fd_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const UnixAddress address = DoorAddress(context);
  if (bind(door->fd(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0 ||
      listen(door->fd(), SOMAXCONN) != 0) {
    return EnvironmentError(
        fmt::format("the ranks of job '{}' cannot meet on this host: {}; is "
                    "another process of this launch still there?",
                    context.job, std::strerror(errno)));
  }
  return door;
}

void Door::Serve() {
  while (true) {
    Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    if (PeerIsOurUser(fd.get())) send(fd.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
  }
}

Result<Invitation> KnockAtDoor(const LaunchContext& context, Signals& signals, Deadline deadline) {
  const UnixAddress address = DoorAddress(context);
  for (double pause = 0.002;; pause = std::min(2 * pause, 0.1)) {
    if (std::optional<Invitation> invitation = Knock(address)) return *std::move(invitation);
    if (deadline.Passed()) {
      return EnvironmentError(
          fmt::format("rank {} found no coordinator (rank 0) of job '{}' on "
                      "this host in time; see the messages of rank 0",
                      context.rank, context.job));
    }
    LOCKSTEP_RETURN_IF_ERROR(Pause(signals, pause));
  }
}

Result<Channel> Join(const Invitation& invitation, const AgentInfo& info, Signals* signals,
                     Deadline deadline, const Contact& own) {
  LOCKSTEP_ASSIGN_OR_RETURN(Fd fd, ConnectTcp(invitation.address, invitation.port, deadline));
  Channel channel(std::move(fd), kMostFrameBytes);
  Encoder hello;
  hello.Put(kProtocolVersion).Raw(invitation.secret);
  Put(hello, info);
  hello.Text(own.address).Put(own.port);
  channel.Send(static_cast<std::uint32_t>(FrameType::kHello), hello.Take());
  LOCKSTEP_RETURN_IF_ERROR(AwaitWelcome(channel, signals, deadline));
  return channel;
}

}  // namespace lockstep
