// How followers on the coordinator's host find it. An abstract unix socket, named after the
// launcher's job, tells its endpoint to processes of our own user. Across hosts MPI carries the
// endpoint (exchange.h).
#include "core/control/rendezvous/endpoint.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/control/codec.h"
#include "core/control/open_files.h"
#include "core/control/rendezvous/local_socket.h"
#include "core/control/tcp.h"

namespace lockstep::control::rendezvous {
namespace {

constexpr int kMostAsked = 64;  // at a time

// An abstract name. The parent is the launcher's daemon, the same for all ranks of a host, if the
// launcher does not name its job.
std::string EndpointServerAddress(const LaunchContext& context) {
  const std::string job = context.job.empty() ? fmt::format("of-{}", getppid()) : context.job;
  return fmt::format("@lockstep-{}-{}-{}", geteuid(), context.launcher, job);
}

// Sleeps, unless a signal to end comes.
Status Pause(Signals& signals, double seconds) {
  pollfd item{signals.fd(), POLLIN, 0};
  poll(&item, 1, Deadline::AfterSeconds(seconds).RemainingMs());
  return signals.TakeBeforeMeeting();
}

// What the coordinator answers, or nothing (it is not there yet).
std::optional<Endpoint> AskForEndpoint(const std::string& server) {
  const Deadline deadline = Deadline::AfterSeconds(1);
  const Result<Fd> fd = ConnectLocal(server, deadline);
  if (!fd.ok()) return std::nullopt;
  pollfd item{fd->get(), POLLIN, 0};
  poll(&item, 1, deadline.RemainingMs());
  char bytes[256];
  const ssize_t n = recv(fd->get(), bytes, sizeof bytes, 0);
  return n > 0 ? Decode<Endpoint>({bytes, static_cast<std::size_t>(n)}) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<EndpointServer>> EndpointServer::Open(const LaunchContext& context,
                                                             const Endpoint& endpoint) {
  auto server = std::make_unique<EndpointServer>();
  server->bytes_ = Encode(endpoint);
  std::string address = EndpointServerAddress(context);
  Result<Fd> fd = ListenLocal(address);
  if (!fd.ok()) {
    return EnvironmentError(
        "the ranks of job '{}' cannot meet on this host: {}; is another process of this launch "
        "still there?",
        context.job, fd.status().message());
  }
  server->fd_ = std::move(fd).value();
  return server;
}

Status EndpointServer::Serve() {
  // Bounded: others than our own user may ask for ever.
  for (int asked = 0; asked < kMostAsked; ++asked) {
    Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() && IsOutOfFiles(errno)) return OutOfFiles(1);
    if (!fd.valid()) break;
    if (PeerIsOurUser(fd.get())) send(fd.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
  }
  return OkStatus();
}

Result<Endpoint> FindEndpoint(const LaunchContext& context, Signals& signals, Deadline deadline) {
  const std::string address = EndpointServerAddress(context);
  for (double pause = 0.002;; pause = std::min(2 * pause, 0.1)) {
    if (std::optional<Endpoint> endpoint = AskForEndpoint(address)) return *std::move(endpoint);
    if (deadline.Passed()) {
      return EnvironmentError(
          "rank {} found no coordinator (rank 0) of job '{}' on this host in time; see the "
          "messages of rank 0",
          context.rank, context.job);
    }
    LOCKSTEP_RETURN_IF_ERROR(Pause(signals, pause));
  }
}

Result<Fd> ConnectTo(const Endpoint& endpoint, Deadline deadline, bool* refused) {
  if (IsLocal(endpoint.address)) return ConnectLocal(endpoint.address, deadline, refused);
  return ConnectTcp(endpoint.address, endpoint.port, deadline, refused);
}

}  // namespace lockstep::control::rendezvous
