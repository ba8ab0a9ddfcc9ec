// Watches the TCP sockets of a process, so that the mean time at which bytes were written and came
// is known: the difference of the two ends of a connection is how long its bytes were on the way
// (Little 1961: mean content over throughput is mean time).
#ifndef LOCKSTEP_STRESS_LINKS_SOCKET_LOG_H_
#define LOCKSTEP_STRESS_LINKS_SOCKET_LOG_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/verdict/tcp_socket.h"

namespace lockstep {

// The bookkeeping, apart from the looking.
class SocketBook {
 public:
  // `now_s` is of CLOCK_MONOTONIC.
  void Note(const std::vector<TcpSocket>& seen, double now_s);
  // Connections as they stand, or stood when they were seen last.
  std::vector<TcpSocket> Connections() const;

 private:
  struct Entry {
    TcpSocket socket;  // with what follows from having watched it
    double seen_s = 0;
    double round_trips_us = 0;  // the sum of as many
    std::uint32_t round_trips = 0;
    bool there = true;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;
};

class SocketLog {
 public:
  SocketLog() = default;
  ~SocketLog() { End(); }
  SocketLog(const SocketLog&) = delete;
  SocketLog& operator=(const SocketLog&) = delete;

  // Watches `pid` in a thread, with at most a twentieth of a processor, until End().
  // `translate` is called in that thread, and leaves out what shall not be watched.
  void Begin(pid_t pid, std::function<void(std::vector<TcpSocket>&)> translate);
  void End();
  std::vector<TcpSocket> Connections() const;

 private:
  void Run(pid_t pid);

  std::function<void(std::vector<TcpSocket>&)> translate_;

  mutable std::mutex mutex_;
  SocketBook book_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_LINKS_SOCKET_LOG_H_
