// Every open descriptor is asked for TCP_INFO (tcp(7)); those that are no connections refuse.
#include "core/environment/tcp_connections.h"

// Newer than libc's <netinet/tcp.h>: bytes_acked, min_rtt, dsack_dups.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>

#include "core/base/process_stat.h"

namespace lockstep::environment {
namespace {

constexpr std::uint8_t kEstablished = 1;  // of include/net/tcp_states.h

}  // namespace

bool TcpConnections::Read(int fd, Counters& counters) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  if (info.tcpi_state != kEstablished) return false;
  counters.bytes = info.tcpi_bytes_acked + info.tcpi_bytes_received;
  counters.segments = info.tcpi_data_segs_out;
  counters.lost = info.tcpi_total_retrans - std::min(info.tcpi_total_retrans, info.tcpi_dsack_dups);
  counters.least_round_trip_s = info.tcpi_min_rtt * 1e-6;
  return true;
}

void TcpConnections::Find() {
  known_.clear();
  for (const int fd : NumbersIn("/proc/self/fd")) {
    Counters counters;
    if (Read(fd, counters)) known_.emplace(fd, counters);
  }
}

TcpConnections::Traffic TcpConnections::Carried(std::uint64_t bytes) {
  Traffic traffic;
  for (auto next = known_.begin(); next != known_.end();) {
    const auto connection = next++;
    Counters now;
    Counters& before = connection->second;
    // A descriptor that is another connection by now has counters that begin anew.
    if (!Read(connection->first, now) || now.bytes < before.bytes) {
      known_.erase(connection);
      continue;
    }
    if (now.bytes - before.bytes >= bytes) {
      traffic.least_round_trip_s = std::fmin(traffic.least_round_trip_s, now.least_round_trip_s);
      traffic.segments += now.segments - before.segments;
      traffic.lost += now.lost - std::min(now.lost, before.lost);
    }
    before = now;
  }
  return traffic;
}

}  // namespace lockstep::environment
