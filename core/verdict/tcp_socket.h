// A TCP socket of a rank, as the kernel of its host counts it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::verdict {

// A look at sockets that took longer did not see one moment: it does not count.
inline constexpr double kLongestLookSeconds = 0.002;

// A counter of bytes came to `bytes` after `after_s` and by `by_s` (CLOCK_MONOTONIC): it was less
// at the last look before, and that at this one. The clock is read before and after each look.
struct ByteStep {
  std::uint64_t bytes = 0;
  double after_s = 0;
  double by_s = 0;
  // Totals at this look.
  double waited_s = 0;      // that threads of the process, and its relay, waited for a processor;
                            // not finite: not known
  double limited_s = 0;     // that the receiver's closed window kept the sender from sending
  double round_trip_s = 0;  // the kernel's smoothed estimate then
};

// After the first `bytes` of a stream: the sum over them of the time that each was to be held back.
struct ByteMark {
  std::uint64_t bytes = 0;
  double byte_s = 0;
};

// What a relay on the way was told to do with one direction, by its own account.
struct RelayLedger {
  std::vector<ByteMark> told = {};  // the newest, ascending
  std::uint32_t lost = 0;           // chunks that were to be late as if a segment had been lost
};

// The counters are those of the stream of data, without what was sent again, so that what one end
// has written and the other has not received is on the way between them, or lost.
struct TcpSocket {
  // "10.0.0.1:4000", "[fe80::1]:4000"; an address of the loopback has "%HOST" behind it, because
  // every host has it.
  std::string local = {};
  std::string remote = {};     // empty: it listens
  std::uint64_t written = 0;   // bytes that the process gave to the kernel
  std::uint64_t received = 0;  // bytes that came in order, read or not
  // Bytes of these that the process has not read. Where it listens: connections that it has not
  // accepted.
  std::uint32_t unread = 0;
  // Segments sent again, without those that the receiver says it had already (RFC 2883).
  std::uint32_t retransmits = 0;
  // The kernel's smoothed estimate; 0: not known, or not that of the whole way.
  std::uint32_t round_trip_us = 0;
  std::uint32_t least_round_trip_us = 0;  // of the last minutes
  std::uint32_t last_received_ms = 0;     // ago
  // The clock of its steps, against the one that both ends are taken to share (AlignClocks).
  double clock_ahead_s = 0;
  bool closed = false;  // it was there earlier: the counters are those of that time

  double limited_s = 0;  // as in ByteStep, so far
  double waited_s = 0;   // of a watched connection, likewise
  // Of a watched connection; the newest steps, ascending.
  std::vector<ByteStep> written_steps = {};
  std::vector<ByteStep> received_steps = {};
  std::uint32_t arrivals = 0;  // times at which more bytes were seen to have come
  // A relay of this rank's agent is on the way: `out` is what this rank writes, `in` what comes.
  bool relayed = false;
  RelayLedger out = {};
  RelayLedger in = {};
};

}  // namespace lockstep::verdict
