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

// The same again and again. Finding the sockets of a process means walking the table of all of the
// host's: two milliseconds where the host has much memory, however few they are. Those that were
// found are then asked for one by one, in microseconds.
class SocketLooks {
 public:
  // Between two searches there are at least `least_gap` looks, and at most `most_gap`. In between
  // a search follows when the process has other sockets, one of them is gone, or one had neither
  // listened nor connected.
  SocketLooks(pid_t pid, int least_gap, int most_gap);
  ~SocketLooks();
  std::vector<TcpSocket> Look();
  // In any case with a search.
  std::vector<TcpSocket> Search();

 private:
  struct Found;
  std::vector<TcpSocket> LookAtFound();

  const pid_t pid_;
  const int least_gap_, most_gap_;
  int looks_ = 0;  // since the last search
  std::unique_ptr<Found> found_;
};

// "127.0.0.1:4000%HOST", "10.0.0.1:4000": an address as TcpSocket has it. `address` points to a
// sockaddr_in or sockaddr_in6; an IPv4 address that is mapped into IPv6 is written as IPv4.
std::string FormatAddress(const void* address);

}  // namespace lockstep::agent
