// Links between ranks, as the kernels at both ends count what passes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict {

using Ranks = std::vector<const RankEvidence*>;

// All of them; `evidence` outlives it.
inline Ranks PointersTo(const std::vector<RankEvidence>& evidence) {
  Ranks ranks;
  for (const RankEvidence& rank : evidence) ranks.push_back(&rank);
  return ranks;
}

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
// the other's end, or one was told of a reset by a peer that went on (until it was told of an ended
// connection, too; on the same host). None when no pair or more than one does so.
std::optional<std::pair<int, int>> FindBrokenLink(const Ranks& evidence);

// What the sockets of the ranks add to a finding is the link that it is about.

// Adds to a finding of silence the links on which bytes do not arrive, and makes their ends the
// culprits; nothing where the sockets show none.
void NameStalledLinks(const Situation& situation, Finding& finding);
// Adds to a finding of reported errors the link that broke (FindBrokenLink).
void NameBrokenLink(const Situation& situation, Finding& finding);
// The rank that several links have in common, else the ends of all of them.
std::vector<int> CommonEnds(const std::vector<LinkTraffic>& links);
// Both directions of the links that broke (FindBrokenLink).
std::vector<LinkTraffic> FindBrokenLinks(const Ranks& evidence);

}  // namespace lockstep::verdict
