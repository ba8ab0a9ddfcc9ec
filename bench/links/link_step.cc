// Messages with a partner, or with all others at once. The kernel's account of the time that the
// threads waited for a processor, and of the connection to the partner, is read outside of what is
// timed (core/environment).
#include "bench/links/link_step.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "bench/links/cases.h"
#include "bench/measure/step.h"
#include "bench/plan/step_fields.h"
#include "core/collective/pattern.h"
#include "core/environment/run_delay.h"
#include "core/environment/tcp_connections.h"
#include "core/stats/stats.h"

namespace lockstep::bench::links {
namespace {

constexpr int kPings = 5;
// Of two segments and more the kernel acknowledges each second one at once, also jumbo frames. A
// single one it keeps until the process answers.
constexpr std::int64_t kAcknowledgedAtOnce = 32 << 10;
// Windows of the rotation in which results are poisoned, see CollectiveStep.
constexpr std::int64_t kWindows = 64;

std::byte* At(void* base, std::int64_t offset) { return static_cast<std::byte*>(base) + offset; }

collective::Operation MessageOf(collective::Collective collective, std::int64_t bytes, int peer) {
  return {collective,
          collective::DataType::kU8,
          collective::Reduction::kSum,
          collective::Blocking::kBlocking,
          bytes,
          peer};
}

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
  LinkStep(const measure::Bench& bench, std::uint32_t case_index)
      : bench_(bench),
        plan_(plan::StepOf<LinkExchange>(bench.plan.cases[case_index])),
        checks_(bench.checks()) {
    const int rank = bench_.communicator.rank();
    for (const auto& [one, other] : plan_.pairs) {
      if (rank != one && rank != other) continue;
      partner_ = rank == one ? other : one;
      is_first_ = rank == one;
    }
    const auto& everyone = plan_.everyone;
    if (std::ranges::find(everyone, rank) != everyone.end()) {
      for (const int peer : everyone) {
        if (peer != rank) peers_.push_back(peer);
      }
    }
    large_send_ = bench_.inputs.At(0);
    small_send_ = bench_.inputs.At(plan::AlignedBytes(plan_.bytes));
    small_recv_ = bench_.recv;
  }

  Status Prepare() override {
    delay_.emplace(getpid());
    connections_.Find();
    const collective::Operation post = {collective::Collective::kSend,
                                        collective::DataType::kU8,
                                        collective::Reduction::kSum,
                                        collective::Blocking::kNonblocking,
                                        0,
                                        0};
    if (peers_.empty() || !threads_.empty()) return OkStatus();
    if (comm::AsSupported(bench_.backend, post).blocking == collective::Blocking::kNonblocking)
      return OkStatus();
    for (std::size_t i = 0; i < 2 * peers_.size(); ++i) {
      threads_.push_back(bench_.device.NewStream());
    }
    return OkStatus();
  }

  Status Rewrite(bool first, bool) override {
    ++bench_.stamp;
    leads_ = is_first_ == (turn_++ % 2 == 0);  // of this case alone: others lie between its visits
    if (!checks_) return OkStatus();
    const bool full = bench_.plan.check == plan::CheckMode::kFull;
    const collective::Pattern pattern(bench_.plan.seed,
                                      MessageOf(collective::Collective::kSend, plan_.bytes, 0),
                                      bench_.plan.world_size, bench_.pattern_memory);
    const int rank = bench_.communicator.rank();
    if (first || full) {
      stamp_ = bench_.stamp;
      pattern.FillSend(large_send_, 0, plan_.bytes, rank, stamp_);
      pattern.FillSend(small_send_, 0, kPingBytes, rank, stamp_);
    }
    const std::int64_t window = full ? 0 : bench_.stamp % kWindows;
    const std::int64_t windows = full ? 1 : kWindows;
    const std::int64_t begin = plan_.bytes * window / windows;
    const std::int64_t end = plan_.bytes * (window + 1) / windows;
    std::vector<int> from = peers_;
    if (partner_ >= 0) from.push_back(partner_);
    for (const int peer : from) pattern.Poison(At(LargeFrom(peer), begin), begin, end - begin);
    pattern.Poison(small_recv_, 0, kPingBytes);
    return OkStatus();
  }

  Result<comm::Interval> Run() override {
    trips_ns_.clear();
    sent_ns_ = round_trips_wait_ns_ = sending_wait_ns_ = 0;
    if (plan_.pairs.empty()) return RunWithAll();
    if (partner_ < 0) {
      interval_.entry = interval_.exit = NowTicks();
      return interval_;
    }
    // The kernel is asked outside of what is timed.
    const double before_ns = WaitedNs();
    LOCKSTEP_RETURN_IF_ERROR(leads_ ? LeadRoundTrips() : AnswerRoundTrips());
    const double between_ns = WaitedNs();
    LOCKSTEP_RETURN_IF_ERROR(leads_ ? LeadMessage() : AnswerMessage());
    round_trips_wait_ns_ = between_ns - before_ns;
    sending_wait_ns_ = WaitedNs() - between_ns;
    // Nearly all bytes between the two: nobody else gets as many from here.
    traffic_ = connections_.Carried(static_cast<std::uint64_t>(plan_.bytes + 1) / 2);
    if (plan_.bytes < kAcknowledgedAtOnce) traffic_ = {};
    return interval_;
  }

  void Compare(measure::Comparison& comparison) override {
    if (!checks_) return;
    for (const int peer : peers_) CheckFrom(peer, LargeFrom(peer), plan_.bytes, comparison);
    if (partner_ < 0) return;
    if (!leads_) CheckFrom(partner_, LargeFrom(partner_), plan_.bytes, comparison);
    CheckFrom(partner_, small_recv_, kPingBytes, comparison);
  }

  // Of the one that leads: half of the median round trip of the five, and the time of its message
  // until the answer; of the other one 0. Of both: how long they waited for a processor in the
  // round trips and while the message was sent; the least round trip that the kernel knows of the
  // connection between them (NaN: none); segments that this rank sent, and of these lost. All at
  // once: the time of the exchange.
  Status TakeParts(std::vector<double>& values) override {
    if (plan_.pairs.empty()) {
      values.push_back(bench_.Ns(interval_.entry, interval_.exit));
      return OkStatus();
    }
    values.push_back(trips_ns_.empty() ? 0 : stats::Median(trips_ns_) / 2);
    values.push_back(sent_ns_);
    values.push_back(round_trips_wait_ns_);
    values.push_back(sending_wait_ns_);
    values.push_back(traffic_.least_round_trip_s * 1e9);
    values.push_back(static_cast<double>(traffic_.segments));
    values.push_back(static_cast<double>(traffic_.lost));
    return OkStatus();
  }

  measure::Meeting meeting() const override { return measure::Meeting::kVisit; }

 private:
  Status Send(int peer, bool small) {
    const std::int64_t bytes = small ? kPingBytes : plan_.bytes;
    return bench_.communicator.Enqueue(MessageOf(collective::Collective::kSend, bytes, peer),
                                       {small ? small_send_ : large_send_, nullptr}, bench_.stream);
  }

  Status Receive(int peer, bool small) {
    const std::int64_t bytes = small ? kPingBytes : plan_.bytes;
    return bench_.communicator.Enqueue(MessageOf(collective::Collective::kRecv, bytes, peer),
                                       {nullptr, small ? small_recv_ : LargeFrom(peer)},
                                       bench_.stream);
  }

  Status LeadRoundTrips() {
    LOCKSTEP_RETURN_IF_ERROR(Receive(partner_, /*small=*/true));
    interval_.entry = NowTicks();
    for (int i = 0; i < kPings; ++i) {
      const Ticks begin = NowTicks();
      LOCKSTEP_RETURN_IF_ERROR(Send(partner_, /*small=*/true));
      LOCKSTEP_RETURN_IF_ERROR(Receive(partner_, /*small=*/true));
      trips_ns_.push_back(bench_.Ns(begin, NowTicks()));
    }
    return OkStatus();
  }

  Status LeadMessage() {
    const Ticks begin = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(Send(partner_, /*small=*/false));
    LOCKSTEP_RETURN_IF_ERROR(Receive(partner_, /*small=*/true));
    interval_.exit = NowTicks();
    sent_ns_ = bench_.Ns(begin, interval_.exit);
    return OkStatus();
  }

  Status AnswerRoundTrips() {
    LOCKSTEP_RETURN_IF_ERROR(Send(partner_, /*small=*/true));
    for (int i = 0; i < kPings; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(Receive(partner_, /*small=*/true));
      if (i == 0) interval_.entry = NowTicks();
      LOCKSTEP_RETURN_IF_ERROR(Send(partner_, /*small=*/true));
    }
    return OkStatus();
  }

  Status AnswerMessage() {
    LOCKSTEP_RETURN_IF_ERROR(Receive(partner_, /*small=*/false));
    LOCKSTEP_RETURN_IF_ERROR(Send(partner_, /*small=*/true));
    interval_.exit = NowTicks();
    return OkStatus();
  }

  Result<comm::Interval> RunWithAll() {
    LOCKSTEP_RETURN_IF_ERROR(
        bench_.communicator.Enqueue(collective::kBarrierOperation, {}, bench_.stream));
    interval_.entry = NowTicks();
    LOCKSTEP_RETURN_IF_ERROR(EnqueueAll());
    if (threads_.empty()) {
      LOCKSTEP_RETURN_IF_ERROR(bench_.communicator.Await(bench_.stream, measure::Never()));
    }
    for (const auto& thread : threads_) {
      LOCKSTEP_RETURN_IF_ERROR(bench_.communicator.Await(*thread, measure::Never()));
    }
    interval_.exit = NowTicks();
    return interval_;
  }

  Status EnqueueAll() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      collective::Operation receive =
          MessageOf(collective::Collective::kRecv, plan_.bytes, peers_[i]);
      collective::Operation send = MessageOf(collective::Collective::kSend, plan_.bytes, peers_[i]);
      if (threads_.empty()) receive.blocking = send.blocking = collective::Blocking::kNonblocking;
      device::Stream& receiving = threads_.empty() ? bench_.stream : *threads_[2 * i];
      device::Stream& sending = threads_.empty() ? bench_.stream : *threads_[2 * i + 1];
      LOCKSTEP_RETURN_IF_ERROR(
          bench_.communicator.Enqueue(receive, {nullptr, LargeFrom(peers_[i])}, receiving));
      LOCKSTEP_RETURN_IF_ERROR(bench_.communicator.Enqueue(send, {large_send_, nullptr}, sending));
    }
    return OkStatus();
  }

  void CheckFrom(int peer, const void* data, std::int64_t count,
                 measure::Comparison& comparison) const {
    const collective::Pattern pattern(bench_.plan.seed,
                                      MessageOf(collective::Collective::kRecv, count, peer),
                                      bench_.plan.world_size, bench_.pattern_memory);
    collective::CheckReport report;
    pattern.CheckRecv(data, 0, count, bench_.communicator.rank(), stamp_, report);
    if (report.wrong > 0) report.first.front().expected += fmt::format(" from rank {}", peer);
    comparison.Add(1, report);
  }

  // Of the receive buffer: all at once a block for each peer.
  void* LargeFrom(int peer) const {
    const auto& everyone = plan_.everyone;
    const auto block = everyone.empty() ? 0 : std::ranges::find(everyone, peer) - everyone.begin();
    return At(bench_.recv,
              plan::AlignedBytes(kPingBytes) + block * plan::AlignedBytes(plan_.bytes));
  }

  // For a processor, so far; NaN: the kernel does not tell.
  double WaitedNs() {
    const double seconds = delay_->Seconds();
    return delay_->known() ? seconds * 1e9 : std::numeric_limits<double>::quiet_NaN();
  }

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
  std::uint32_t turn_ = 0;
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

}  // namespace

std::unique_ptr<measure::Step> MakeLinkStep(const measure::Bench& bench, std::uint32_t case_index) {
  return std::make_unique<LinkStep>(bench, case_index);
}

}  // namespace lockstep::bench::links
