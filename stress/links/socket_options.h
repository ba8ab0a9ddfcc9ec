// What the relay asks of its sockets.
#ifndef LOCKSTEP_STRESS_LINKS_SOCKET_OPTIONS_H_
#define LOCKSTEP_STRESS_LINKS_SOCKET_OPTIONS_H_

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace lockstep::stress::links {

inline void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The kernel tells the other end of a reset when this descriptor is closed.
inline void ResetOnClose(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);
// getsockname or getpeername.
inline sockaddr_storage AddressOf(int fd, NameFunction name) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  name(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

}  // namespace lockstep::stress::links

#endif  // LOCKSTEP_STRESS_LINKS_SOCKET_OPTIONS_H_
