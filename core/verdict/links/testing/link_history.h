// Test material: links in virtual time, and what looks at their ends would show of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict/testing/history.h"

namespace lockstep::verdict::links {

// A look at all sockets of a rank.
struct LinkLook {
  double began_s = 0;
  double at_s = 0;  // the moment that it shows
  double ended_s = 0;
};

// What happens to the bytes from one rank to another.
struct LinkWay {
  struct Portion {
    double written_s = 0;
    double came_s = 0;
    double told_s = 0;     // relayed: so long it was to be held back
    double limited_s = 0;  // the receiver's window was closed so long, just before it came
  };
  std::vector<Portion> portions = {};  // in order of both times
  bool relayed = false;
  double round_trip_s = 0.0002;
  std::uint32_t least_round_trip_us = 0;
  std::uint32_t resent = 0;  // or lost, by the relay's account
};

// One rank of it.
struct LinkEnd {
  std::vector<LinkLook> looks = {};
  std::function<double(double)> waited_s = [](double) { return 0.0; };  // total, at a time
  double clock_ahead_s = 0;
  double echo_s = 0.0005;
};

class LinkHistory {
 public:
  static constexpr std::uint64_t kPortionBytes = 64;
  static constexpr std::size_t kMostSteps = 64;

  explicit LinkHistory(int ranks = 4) : ends_(static_cast<std::size_t>(ranks)) {}
  LinkEnd& end(int rank) { return ends_[static_cast<std::size_t>(rank)]; }
  LinkWay& way(int from, int to) { return ways_[{from, to}]; }
  int size() const { return static_cast<int>(ends_.size()); }

  static std::string Endpoint(int rank, int peer) {
    return "10.0.0." + std::to_string(rank) + ":" + std::to_string(4000 + peer);
  }

  std::vector<RankEvidence> Evidence() {
    std::vector<RankEvidence> ranks;
    for (int rank = 0; rank < size(); ++rank) {
      RankEvidence evidence = After49(rank);
      evidence.echo_s = end(rank).echo_s;
      for (int peer = 0; peer < size(); ++peer) {
        if (peer != rank && ways_.contains({rank, peer})) {
          evidence.sockets.push_back(SocketOf(rank, peer));
        }
      }
      ranks.push_back(evidence);
    }
    return ranks;
  }

 private:
  // The steps of a counter that the looks of a rank show; `time` tells of a portion when it counts.
  std::vector<ByteStep> StepsOf(int rank, const LinkWay& way, double LinkWay::Portion::*time) {
    const LinkEnd& looker = end(rank);
    std::vector<ByteStep> steps;
    std::uint64_t shown = 0;
    std::size_t next = 0;
    double before_s = 0, limited_s = 0;
    for (const LinkLook& look : looker.looks) {
      while (next < way.portions.size() && way.portions[next].*time <= look.at_s) ++next;
      limited_s = LimitedUntil(way, look.at_s);
      const std::uint64_t bytes = next * kPortionBytes;
      if (steps.empty() || bytes > shown) {
        if (steps.size() == kMostSteps) steps.erase(steps.begin());
        steps.push_back({bytes, before_s + looker.clock_ahead_s,
                         look.ended_s + looker.clock_ahead_s, looker.waited_s(look.at_s), limited_s,
                         way.round_trip_s});
        shown = bytes;
      }
      before_s = look.began_s;
    }
    return steps;
  }

  static double LimitedUntil(const LinkWay& way, double at_s) {
    double sum_s = 0;
    for (const LinkWay::Portion& portion : way.portions) {
      if (portion.limited_s == 0) continue;
      sum_s += std::clamp(at_s - (portion.came_s - portion.limited_s), 0.0, portion.limited_s);
    }
    return sum_s;
  }

  TcpSocket SocketOf(int rank, int peer) {
    const LinkWay& out = way(rank, peer);
    const LinkWay& in = way(peer, rank);
    TcpSocket socket;
    socket.local = Endpoint(rank, peer);
    socket.remote = Endpoint(peer, rank);
    socket.closed = true;
    socket.written_steps = StepsOf(rank, out, &LinkWay::Portion::written_s);
    socket.received_steps = StepsOf(rank, in, &LinkWay::Portion::came_s);
    socket.written = out.portions.size() * kPortionBytes;
    socket.received = in.portions.size() * kPortionBytes;
    socket.arrivals = static_cast<std::uint32_t>(in.portions.size());
    socket.waited_s = end(rank).looks.empty() ? 0 : end(rank).waited_s(1e9);
    socket.limited_s = LimitedUntil(out, 1e9);
    socket.least_round_trip_us = out.least_round_trip_us;
    // The lower rank made the connection, through its relay.
    socket.relayed = out.relayed && rank < peer;
    if (socket.relayed) {
      socket.out = LedgerOf(out);
      socket.in = LedgerOf(in);
    } else if (!out.relayed) {
      socket.retransmits = out.resent;
    }
    return socket;
  }

  static RelayLedger LedgerOf(const LinkWay& way) {
    RelayLedger ledger{{{}}, way.resent};
    for (const LinkWay::Portion& portion : way.portions) {
      const ByteMark& last = ledger.told.back();
      ledger.told.push_back({last.bytes + kPortionBytes,
                             last.byte_s + static_cast<double>(kPortionBytes) * portion.told_s});
    }
    return ledger;
  }

  std::vector<LinkEnd> ends_;
  std::map<std::pair<int, int>, LinkWay> ways_;
};

}  // namespace lockstep::verdict::links
