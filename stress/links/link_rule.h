// What is wrong with a link, as one of its ends sees it.
#pragma once

#include <cstdint>

namespace lockstep::stress::links {

struct LinkRule {
  static constexpr int kEveryPeer = -1;
  int id = 0;
  int peer = kEveryPeer;  // of the connections that it is about: the rank at the other end
  bool outgoing = true;   // bytes from this rank to the peer
  bool incoming = true;   // bytes from the peer
  bool down = false;      // nothing passes; nothing is told to anyone either
  bool reset = false;     // once, now: both ends are told that the connection is broken
  double delay_s = 0;     // of every chunk
  double jitter_s = 0;    // more, uniform in [0, jitter_s]; chunks never overtake each other
  double loss = 0;        // probability that a segment is lost, which costs kRetransmitSeconds
  double rate_bytes_per_s = 0;  // 0: unlimited
  std::uint64_t seed = 1;

  static void Describe(auto& fields, auto& rule) {
    fields(rule.id, rule.peer, rule.outgoing, rule.incoming, rule.down, rule.reset, rule.delay_s);
    fields(rule.jitter_s, rule.loss, rule.rate_bytes_per_s, rule.seed);
  }
  bool Concerns(int a_peer, bool is_outgoing) const {
    // A connection to nobody's worker (the launcher's daemon) is left alone.
    return a_peer >= 0 && (peer == kEveryPeer || peer == a_peer) &&
           (is_outgoing ? outgoing : incoming);
  }
};

// Loss is that of TCP: the stream stays whole, and what comes behind a lost segment waits until it
// was sent again. That is taken to cost Linux's shortest retransmission time-out (TCP_RTO_MIN), as
// when the tail of a message is lost and no later segment tells the sender (RFC 6298, RFC 8985);
// where later segments do, a real network recovers sooner. Of one chunk all lost segments together
// cost one time-out.
inline constexpr double kRetransmitSeconds = 0.2;
inline constexpr std::size_t kSegmentBytes = 1448;  // Ethernet, with time stamps

}  // namespace lockstep::stress::links
