// The TCP sockets of a process, with the kernel's counters. Needs no privilege and does not disturb
// the process: /proc/<pid>/fd says which sockets are its own, netlink's sock_diag(7) the rest.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "core/verdict/tcp_socket.h"

namespace lockstep::agent {

using verdict::TcpSocket;

// Listening and connected ones; one that listens on all addresses is there once for each address of
// this host. Empty where the kernel does not tell, or the process is gone. At most kMostSockets.
std::vector<TcpSocket> SocketsOf(pid_t pid);
inline constexpr std::size_t kMostSockets = 4096;

// The same again and again. Finding the sockets of a process means walking all of the host's; those
// that were found are then asked for one by one, which costs a tenth. New ones are found a few
// looks later.
class SocketLooks {
 public:
  explicit SocketLooks(pid_t pid);
  ~SocketLooks();
  std::vector<TcpSocket> Look();

 private:
  struct Found;
  const pid_t pid_;
  int looks_ = 0;
  std::unique_ptr<Found> found_;
};

// "127.0.0.1:4000%HOST", "10.0.0.1:4000": an address as TcpSocket has it. `address` points to a
// sockaddr_in or sockaddr_in6; an IPv4 address that is mapped into IPv6 is written as IPv4.
std::string FormatAddress(const void* address);

}  // namespace lockstep::agent
