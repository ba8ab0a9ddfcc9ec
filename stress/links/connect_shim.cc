// Stands before libc's connect(), listen() and getpeername() in this program: with
// LOCKSTEP_LINKS=PORT in the environment every outgoing TCP connection goes through the relay on
// that port of the loopback. Without it both pass on at once.
//
// What the executable defines comes before libc for every library that it loads (ELF's global
// scope), so no library has to be found and preloaded. Only libc is used here.
//
// To the relay: LinkHello. From it: LinkAnswer, when the destination has answered. The calling
// thread waits for that, also where the socket does not block: the kernel of the destination
// accepts without its program.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stress/links/link_hello.h"

namespace {

using lockstep::stress::links::LinkAnswer;
using lockstep::stress::links::LinkHello;

// As long as a kernel tries to connect at least (tcp(7), tcp_syn_retries).
constexpr int kAnswerMs = 120'000;

// Whom the socket with this local port was meant for. A port is taken anew only by a later
// connection through here, which writes its own.
sockaddr_storage peers[1 << 16];

int RelayPort() {
  // Not remembered: a relay that starts in this very process listens before the variable is set.
  const char* const text = getenv(lockstep::stress::links::kLinksVariable);
  return text == nullptr ? 0 : atoi(text);
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int NextConnect(int fd, const sockaddr* address, socklen_t length) {
  static const auto next = Next<int (*)(int, const sockaddr*, socklen_t)>("connect");
  return next(fd, address, length);
}

int NextPeerName(int fd, sockaddr* address, socklen_t* length) {
  static const auto next = Next<int (*)(int, sockaddr*, socklen_t*)>("getpeername");
  return next(fd, address, length);
}

bool IsTcp(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

// The relay's address as this family writes it.
socklen_t RelayAddress(sa_family_t family, sockaddr_storage& to) {
  memset(&to, 0, sizeof to);
  if (family == AF_INET) {
    auto& four = reinterpret_cast<sockaddr_in&>(to);
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<uint16_t>(RelayPort()));
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof four;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(to);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<uint16_t>(RelayPort()));
  six.sin6_addr.s6_addr[10] = six.sin6_addr.s6_addr[11] = 0xff;
  const in_addr_t loopback = htonl(INADDR_LOOPBACK);
  memcpy(six.sin6_addr.s6_addr + 12, &loopback, sizeof loopback);
  return sizeof six;
}

// True when all bytes came. The socket does not block.
bool Receive(int fd, void* bytes, size_t size) {
  timespec began{};
  clock_gettime(CLOCK_MONOTONIC, &began);
  size_t have = 0;
  while (have < size) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long passed_ms =
        (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1'000'000;
    if (passed_ms >= kAnswerMs) return false;
    pollfd item{fd, POLLIN, 0};
    if (poll(&item, 1, kAnswerMs - static_cast<int>(passed_ms)) <= 0) continue;
    const ssize_t n = recv(fd, static_cast<char*>(bytes) + have, size - have, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n > 0) have += static_cast<size_t>(n);
  }
  return true;
}

// 0, or an errno.
int ConnectThroughRelay(int fd, const sockaddr* address, socklen_t length) {
  sockaddr_storage to;
  const socklen_t to_length = RelayAddress(address->sa_family, to);
  if (NextConnect(fd, reinterpret_cast<const sockaddr*>(&to), to_length) != 0) return errno;
  LinkHello hello;
  memcpy(hello.address, address, length);
  if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return ECONNREFUSED;
  LinkAnswer answer;
  if (!Receive(fd, &answer, sizeof answer)) return ETIMEDOUT;
  if (answer.error != 0) return answer.error;
  sockaddr_storage own{};
  socklen_t own_length = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0) {
    // The port stands in the same place for both families.
    memcpy(&peers[ntohs(reinterpret_cast<sockaddr_in&>(own).sin_port)], address, length);
  }
  return 0;
}

// Libraries name a connection by an address that its peer listened on, perhaps for a moment only.
void TellThatItListens(int fd) {
  LinkHello hello;
  hello.magic = lockstep::stress::links::kListens;
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) return;
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return;
  memcpy(hello.address, &own, length < sizeof hello.address ? length : sizeof hello.address);
  const int line = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (line < 0) return;
  sockaddr_storage to;
  const socklen_t to_length = RelayAddress(AF_INET, to);
  if (NextConnect(line, reinterpret_cast<const sockaddr*>(&to), to_length) == 0) {
    static_cast<void>(!send(line, &hello, sizeof hello, MSG_NOSIGNAL));
  }
  close(line);
}

bool IsRelay(const sockaddr* address, socklen_t length) {
  sockaddr_storage relay;
  const socklen_t relay_length = RelayAddress(address->sa_family, relay);
  if (length < relay_length) return false;
  if (address->sa_family == AF_INET) return memcmp(address, &relay, 8) == 0;
  const auto& a = *reinterpret_cast<const sockaddr_in6*>(address);
  const auto& b = reinterpret_cast<const sockaddr_in6&>(relay);
  return a.sin6_port == b.sin6_port && memcmp(&a.sin6_addr, &b.sin6_addr, 16) == 0;
}

bool IsInternet(const sockaddr* address) {
  return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int connect(int fd, const sockaddr* address,
                                                   socklen_t length) {
  if (RelayPort() == 0 || address == nullptr || length > sizeof(LinkHello::address) ||
      length < sizeof(sockaddr_in) || !IsInternet(address) || !IsTcp(fd)) {
    return NextConnect(fd, address, length);
  }
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  const int error = ConnectThroughRelay(fd, address, length);
  fcntl(fd, F_SETFL, flags);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

__attribute__((visibility("default"))) int listen(int fd, int backlog) {
  static const auto next = Next<int (*)(int, int)>("listen");
  const int result = next(fd, backlog);
  if (result == 0 && RelayPort() != 0) TellThatItListens(fd);
  return result;
}

__attribute__((visibility("default"))) int getpeername(int fd, sockaddr* address,
                                                       socklen_t* length) {
  const socklen_t room = length == nullptr ? 0 : *length;
  const int result = NextPeerName(fd, address, length);
  if (result != 0 || RelayPort() == 0 || room < sizeof(sockaddr_in)) return result;
  if (!IsInternet(address) || !IsRelay(address, *length)) return result;
  sockaddr_storage own{};
  socklen_t own_length = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) != 0) return result;
  const sockaddr_storage& peer = peers[ntohs(reinterpret_cast<sockaddr_in&>(own).sin_port)];
  if (peer.ss_family == 0) return result;
  memcpy(address, &peer, room < *length ? room : *length);
  return result;
}

}  // extern "C"
