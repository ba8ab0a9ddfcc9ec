// A TCP socket of a rank, as the kernel of its host counts it.
#ifndef LOCKSTEP_CORE_VERDICT_TCP_SOCKET_H_
#define LOCKSTEP_CORE_VERDICT_TCP_SOCKET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// After the first `bytes` of a stream: the sum over them of the time at which each came to pass
// (CLOCK_MONOTONIC). The difference of two ends is how long they were on the way in all.
struct ByteMark {
  std::uint64_t bytes = 0;
  double byte_s = 0;
};

// The counters are those of the stream of data, without what was sent again, so that what one end
// has written and the other has not received is on the way between them, or lost.
struct TcpSocket {
  // "10.0.0.1:4000", "[fe80::1]:4000"; an address of the loopback has "%HOST" behind it, because
  // every host has it.
  std::string local = {};
  std::string remote = {};        // empty: it listens
  std::uint64_t written = 0;      // bytes that the process gave to the kernel
  std::uint64_t received = 0;     // bytes that came in order, read or not
  std::uint32_t unread = 0;       // bytes of these that the process has not read
  std::uint32_t retransmits = 0;  // segments sent again
  // The kernel's smoothed estimate, of a watched connection its mean while bytes were written; 0:
  // not known, or not that of the whole way.
  std::uint32_t round_trip_us = 0;
  std::uint32_t least_round_trip_us = 0;  // of the last minutes
  std::uint32_t last_sent_ms = 0;         // ago
  std::uint32_t last_received_ms = 0;
  bool closed = false;  // it was there earlier: the counters are those of that time

  // Of a connection that was watched from its beginning; the newest marks, ascending.
  std::vector<ByteMark> written_marks = {};
  std::vector<ByteMark> received_marks = {};
  std::uint32_t arrivals = 0;  // times at which more bytes were seen to have come
  double unread_byte_s = 0;    // bytes times seconds that they waited to be read
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_VERDICT_TCP_SOCKET_H_
