// Connections between hosts: no delay, and a bound on how long a host that is gone is waited for.
#include "core/control/tcp.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace lockstep::control {
namespace {

sockaddr_in SocketAddress(const std::string& address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  inet_pton(AF_INET, address.c_str(), &result.sin_addr);
  return result;
}

Status TcpError(const char* what, const std::string& address, int error) {
  return EnvironmentError(
      "cannot {} {}: {}; choose a network that all hosts reach with LOCKSTEP_INTERFACE", what,
      address, std::strerror(error));
}

}  // namespace

void SetTcpOptions(int fd, double lost_seconds) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(lost_seconds * 1e3));
}

void BearSlowPeer(int fd) {
  constexpr int kNone = 0;
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kNone, sizeof kNone);
}

bool AllAcknowledged(int fd) {
  tcp_info info{};
  // Also what could not even be sent, because our own link is down: tcp(7).
  int queued = 0;
  socklen_t length = sizeof info;
  int domain = AF_INET;
  socklen_t domain_length = sizeof domain;
  // Both ends of a unix socket have one kernel.
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_length) == 0 && domain == AF_UNIX) {
    return true;
  }
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED && ioctl(fd, SIOCOUTQ, &queued) == 0 && queued == 0;
}

Result<Fd> ListenTcp(const std::string& address, std::uint16_t& port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in bound = SocketAddress(address, port);
  socklen_t length = sizeof bound;
  // A port that is chosen is used again by the next launch.
  const int again = port != 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&bound), length) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return TcpError("listen on", address, errno);
  }
  port = ntohs(bound.sin_port);
  return fd;
}

Result<Fd> ConnectTcp(const std::string& address, std::uint16_t port, Deadline deadline,
                      bool* refused) {
  if (refused != nullptr) *refused = false;
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return TcpError("connect to", address, errno);
  SetTcpOptions(fd.get());
  const sockaddr_in to = SocketAddress(address, port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return fd;
  if (errno != EINPROGRESS) {
    if (refused != nullptr) *refused = errno == ECONNREFUSED;
    return TcpError("connect to", address, errno);
  }
  pollfd item{fd.get(), POLLOUT, 0};
  while (poll(&item, 1, deadline.RemainingMs()) <= 0) {
    if (deadline.Passed()) return TcpError("connect to", address, ETIMEDOUT);
  }
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0 && refused != nullptr) *refused = error == ECONNREFUSED || error == ECONNRESET;
  if (error != 0) return TcpError("connect to", address, error);
  return fd;
}

}  // namespace lockstep::control
