// Links between ranks, as the kernels at both ends count what passes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict/evidence.h"

namespace lockstep::verdict {

using Ranks = std::vector<const RankEvidence*>;

// One direction of one TCP connection between two ranks' processes.
struct LinkTraffic {
  int from = 0;
  int to = 0;
  std::uint64_t written = 0;      // bytes that `from` gave to its kernel
  std::uint64_t received = 0;     // bytes of them that reached the kernel of `to`
  std::uint32_t unread = 0;       // bytes of these that `to` has not read
  std::uint32_t retransmits = 0;  // through a relay: by its account
  std::uint32_t arrivals = 0;     // of a watched connection
  double least_round_trip_s = 0;  // as the kernel of `from` has it; 0: not known
  // Its ends, of the evidence.
  const TcpSocket* writer = nullptr;
  const TcpSocket* reader = nullptr;

  bool relayed() const { return writer->relayed || reader->relayed; }
  // Bytes between the two ends.
  std::uint64_t on_the_way() const { return written > received ? written - received : 0; }
};

// Both directions of every open connection, or with `closed` of every one, of which both ends are
// known. Linear but for a logarithm.
std::vector<LinkTraffic> TrafficOf(const Ranks& evidence, bool closed = false);

// Directions on which bytes do not arrive although their reader has read everything that did: the
// link holds them, and neither rank. Means something only of ranks that are silent for long. A
// pair of ranks is named once for each direction.
std::vector<LinkTraffic> FindStalledLinks(const Ranks& evidence);

// " 48 bytes that rank 0 wrote to rank 1 have not arrived …", for the end of a message; one line.
std::string DescribeStalled(const std::vector<LinkTraffic>& stalled);

// The two ranks of a connection that broke although neither of them left: each one's error names
// the other's end, or one was told of a reset by a peer that goes on. None when no pair or more
// than one does so.
std::optional<std::pair<int, int>> FindBrokenLink(const Ranks& evidence);

}  // namespace lockstep::verdict
