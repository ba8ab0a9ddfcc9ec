// Between which looks the counters of sockets moved: the bookkeeping, apart from the looking. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict/tcp_socket.h"

namespace lockstep::stress::links {

class SocketBook {
 public:
  // One look at all sockets of a process. What it saw was so at a moment between the two.
  struct Look {
    double began_s = 0;  // CLOCK_MONOTONIC
    double ended_s = 0;
    double waited_s = 0;  // as in ByteStep, at a moment between the two
  };
  void Note(const std::vector<verdict::TcpSocket>& seen, const Look& look);
  // Connections as they stand, or stood when they were seen last.
  std::vector<verdict::TcpSocket> Connections() const;

 private:
  struct Entry {
    verdict::TcpSocket socket;  // with what follows from having watched it
    double seen_s = 0;          // the last look at it began
    bool there = true;
  };
  void NoteOne(const verdict::TcpSocket& socket, const Look& look);

  std::map<std::pair<std::string, std::string>, Entry> entries_;
};

}  // namespace lockstep::stress::links
