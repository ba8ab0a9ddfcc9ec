// A TCP socket of a rank, as the kernel of its host counts it.
#ifndef LOCKSTEP_CORE_VERDICT_TCP_SOCKET_H_
#define LOCKSTEP_CORE_VERDICT_TCP_SOCKET_H_

#include <cstdint>
#include <string>

namespace lockstep {

// The counters are those of the stream of data, without what was sent again, so that what one end
// has written and the other has not received is on the way between them, or lost.
struct TcpSocket {
  // "10.0.0.1:4000", "[fe80::1]:4000"; an address of the loopback has "%HOST" behind it, because
  // every host has it.
  std::string local;
  std::string remote;               // empty: it listens
  std::uint64_t written = 0;        // bytes that the process gave to the kernel
  std::uint64_t received = 0;       // bytes that came in order, read or not
  std::uint32_t unread = 0;         // bytes of these that the process has not read
  std::uint32_t retransmits = 0;    // segments sent again
  std::uint32_t round_trip_us = 0;  // the kernel's smoothed estimate
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_VERDICT_TCP_SOCKET_H_
