// Looks at the TCP sockets of a process again and again, so that it is known between which moments
// bytes were written and came (socket_book.h): what is then between the two ends is on the way.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/verdict/tcp_socket.h"
#include "stress/links/socket_book.h"

namespace lockstep::stress::links {

class SocketLog {
 public:
  SocketLog() = default;
  ~SocketLog() { End(); }
  SocketLog(const SocketLog&) = delete;
  SocketLog& operator=(const SocketLog&) = delete;

  // Watches `pid` in a thread, with at most a twentieth of a processor, until End(). `relay`: the
  // thread of this process whose wait for a processor counts as that of `pid`. `translate` is
  // called in the watching thread after each look, and leaves out what shall not be watched.
  void Begin(pid_t pid, pid_t relay,
             std::function<void(std::vector<verdict::TcpSocket>&)> translate);
  void End();
  std::vector<verdict::TcpSocket> Connections() const;

 private:
  void Run(pid_t pid, pid_t relay);

  std::function<void(std::vector<verdict::TcpSocket>&)> translate_;

  mutable std::mutex mutex_;
  SocketBook book_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep::stress::links
