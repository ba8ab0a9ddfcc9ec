// Both ends of the door, and how a follower joins.
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/control/open_files.h"
#include "core/control/protocol.h"
#include "core/control/rendezvous/lobby.h"
#include "core/control/rendezvous/local_socket.h"
#include "core/control/tcp.h"

namespace lockstep::control::rendezvous {
namespace {

constexpr int kMostKnocks = 64;  // at a time

// An abstract name. The parent is the launcher's daemon, the same for all ranks of a host, if the
// launcher does not name its job.
std::string DoorAddress(const LaunchContext& context) {
  const std::string job = context.job.empty() ? fmt::format("of-{}", getppid()) : context.job;
  return fmt::format("@lockstep-{}-{}-{}", geteuid(), context.launcher, job);
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
std::optional<Invitation> Knock(const std::string& door) {
  const Deadline deadline = Deadline::AfterSeconds(1);
  const Result<Fd> fd = ConnectLocal(door, deadline);
  if (!fd.ok()) return std::nullopt;
  pollfd item{fd->get(), POLLIN, 0};
  poll(&item, 1, deadline.RemainingMs());
  char bytes[256];
  const ssize_t n = recv(fd->get(), bytes, sizeof bytes, 0);
  return n > 0 ? DecodeInvitation({bytes, static_cast<std::size_t>(n)}) : std::nullopt;
}

// Whether it came: false when the channel was closed without a word.
Result<bool> AwaitWelcome(Channel& channel, Signals* signals, Deadline deadline) {
  while (true) {
    if (const std::optional<Frame> frame = channel.Take()) {
      if (frame->type == static_cast<std::uint32_t>(FrameType::kWelcome)) return true;
      return EnvironmentError(
          "the coordinator (rank 0) did not admit this rank; all ranks must run the same program, "
          "each rank once");
    }
    if (!channel.open()) return false;
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
  std::string address = DoorAddress(context);
  Result<Fd> fd = ListenLocal(address);
  if (!fd.ok()) {
    return EnvironmentError(
        fmt::format("the ranks of job '{}' cannot meet on this host: {}; is "
                    "another process of this launch still there?",
                    context.job, fd.status().message()));
  }
  door->fd_ = std::move(fd).value();
  return door;
}

Status Door::Serve() {
  // Bounded: others than our own user may knock for ever.
  for (int knocks = 0; knocks < kMostKnocks; ++knocks) {
    Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() && IsOutOfFiles(errno)) return OutOfFiles(1);
    if (!fd.valid()) break;
    if (PeerIsOurUser(fd.get())) send(fd.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
  }
  return OkStatus();
}

Result<Invitation> KnockAtDoor(const LaunchContext& context, Signals& signals, Deadline deadline) {
  const std::string address = DoorAddress(context);
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

Result<Fd> ConnectTo(const Invitation& invitation, Deadline deadline, bool* refused) {
  if (IsLocal(invitation.address)) return ConnectLocal(invitation.address, deadline, refused);
  return ConnectTcp(invitation.address, invitation.port, deadline, refused);
}

Result<Channel> Join(const Invitation& invitation, const AgentInfo& info, Signals* signals,
                     Deadline deadline, const Contact& own) {
  Encoder hello;
  hello.Put(kProtocolVersion).Raw(invitation.secret);
  Put(hello, info);
  hello.Text(own.address).Put(own.port);
  const std::string words = hello.Take();
  for (double pause = 0.002;; pause = std::min(2 * pause, 0.1)) {
    LOCKSTEP_ASSIGN_OR_RETURN(Fd fd, ConnectTo(invitation, deadline));
    Channel channel(std::move(fd), kMostFrameBytes);
    channel.Send(static_cast<std::uint32_t>(FrameType::kHello), words);
    LOCKSTEP_ASSIGN_OR_RETURN(const bool welcome, AwaitWelcome(channel, signals, deadline));
    if (welcome) return channel;
    // Where strangers crowd, one that belongs there can be dropped for one of them.
    if (deadline.Passed()) {
      return EnvironmentError(
          "the coordinator (rank 0) is gone or did not admit this rank; see the messages of rank "
          "0");
    }
    const timespec moment{0, static_cast<long>(pause * 1e9)};
    nanosleep(&moment, nullptr);
  }
}

}  // namespace lockstep::control::rendezvous
