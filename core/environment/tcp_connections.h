// What the kernel knows of the TCP connections of this process. How long a process waits for a
// processor is not in it: the kernel acknowledges what arrives.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

namespace lockstep::environment {

class TcpConnections {
 public:
  struct Traffic {
    double least_round_trip_s = std::numeric_limits<double>::quiet_NaN();  // NaN: not known
    std::uint64_t segments = 0;  // with data, that were sent
    std::uint64_t lost = 0;      // of these; what was sent again too early does not count
  };

  // All that there are now; what passed before does not count.
  void Find();
  // Of the connections over which at least `bytes` (> 0) passed since this was asked last, or since
  // Find. Costs about a microsecond a connection.
  Traffic Carried(std::uint64_t bytes);

 private:
  struct Counters {
    std::uint64_t bytes = 0;  // both ways
    std::uint64_t segments = 0;
    std::uint64_t lost = 0;
    double least_round_trip_s = 0;
  };
  static bool Read(int fd, Counters& counters);

  std::map<int, Counters> known_;  // by file descriptor
};

}  // namespace lockstep::environment
