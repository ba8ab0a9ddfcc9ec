// A case whose iteration is an exchange of messages with a partner, or with all others at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/links/cases.h"
#include "bench/measure/step.h"
#include "core/collective/pattern.h"
#include "core/environment/run_delay.h"
#include "core/environment/tcp_connections.h"

namespace lockstep::bench::links {

// An iteration with a partner measures one direction; they take turns. r: a small message that is
// not timed.
//     the one that leads                 the other one
//     waits for r                        r
//     ping, pong (timed) x 5             ping, pong x 5
//     message, answer (timed)            message, answer
// So nothing of another pair's, and no barrier's, is in what is timed: a rank that comes late to
// its partner, because another link of it is slow, does not make this one slow. A message is over
// when its receiver says so, for only then did it arrive.
class LinkStep final : public measure::Step {
 public:
  LinkStep(const measure::Bench& bench, std::uint32_t case_index);

  Status Prepare() override;
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  void Compare(measure::Comparison& comparison) override;
  // Of the one that leads: half of the median round trip of the five, and the time of its message
  // until the answer; of the other one 0. Of both: how long they waited for a processor in the
  // round trips and while the message was sent; the least round trip that the kernel knows of the
  // connection between them (NaN: none); segments that this rank sent, and of these lost. All at
  // once: the time of the exchange.
  Status TakeParts(std::vector<double>& values) override;
  measure::Meeting meeting() const override { return measure::Meeting::kVisit; }

 private:
  Status Send(int peer, bool small);
  Status Receive(int peer, bool small);
  Status LeadRoundTrips();
  Status LeadMessage();
  Status AnswerRoundTrips();
  Status AnswerMessage();
  Result<comm::Interval> RunWithAll();
  Status EnqueueAll();
  void CheckFrom(int peer, const void* data, std::int64_t count,
                 measure::Comparison& comparison) const;
  // Of the receive buffer: all at once a block for each peer.
  void* LargeFrom(int peer) const;
  // For a processor, so far; NaN: the kernel does not tell.
  double WaitedNs();

  measure::Bench bench_;
  LinkExchange plan_;
  bool checks_;
  int partner_ = -1;  // none: it has a rest
  bool is_first_ = false;
  bool leads_ = false;      // in this iteration
  std::vector<int> peers_;  // all at once: whom it exchanges with
  // All at once, where the library has no non-blocking calls: a thread for each message.
  std::vector<std::unique_ptr<device::Stream>> threads_;
  void* small_send_ = nullptr;
  void* small_recv_ = nullptr;
  void* large_send_ = nullptr;
  std::uint32_t stamp_ = 0;  // of what this rank sends, the same on all ranks
  comm::Interval interval_;
  std::vector<double> trips_ns_;
  double sent_ns_ = 0;
  std::optional<environment::RunDelay> delay_;  // of the threads that the visit found
  double round_trips_wait_ns_ = 0;
  double sending_wait_ns_ = 0;
  environment::TcpConnections connections_;
  environment::TcpConnections::Traffic traffic_;  // of the connections to the partner
};

}  // namespace lockstep::bench::links
