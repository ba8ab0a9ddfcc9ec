// Plays gloo's ring step by step with each rank's own count, to find who hangs and who crashes. It
// follows gloo/allreduce.cc, segment by segment. Bytes travel too, so that a rank that goes on has
// the data that it would have.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/comm/sim/mismatch.h"

namespace lockstep::comm::sim {
namespace {

constexpr std::size_t kMostSegmentBytes = 1024 * 1024;  // gloo/allreduce.h, kMaxSegmentSize

class RingRank {
 public:
  RingRank(const SimCall& call, Wires& wires)
      : call_(call),
        wires_(wires),
        ranks_(static_cast<std::size_t>(call.size)),
        total_(call.BlockSize()) {
    const auto element = static_cast<std::size_t>(collective::SizeOf(call.run.type));
    const std::size_t segments =
        std::max((total_ + kMostSegmentBytes - 1) / kMostSegmentBytes, ranks_ * 2);
    per_rank_ = (segments + ranks_ - 1) / ranks_;
    const std::size_t all = per_rank_ * ranks_;
    segment_ = ((total_ + all - 1) / all + element - 1) / element * element;
    for (auto& room : rooms_) room.resize(segment_);
    const auto* send = static_cast<const std::byte*>(call.buffers.send);
    out_.assign(send, send + total_);
    if (call.run.collective == Collective::kReduce) phases_ = 1;
  }

  // A wait that is over, and what follows it.
  bool Step() {
    if (crashed_ || phase_ == phases_) return false;
    const std::size_t steps = per_rank_ * (ranks_ - 1);
    if (step_ >= 2 && !Finish(step_ - 2)) return false;
    if (step_ < steps) Begin(step_);
    if (++step_ == steps + 2) {
      step_ = 0;
      ++phase_;
    }
    return true;
  }

  SimFate fate() const {
    if (crashed_) return Overrun(crashed_->first, crashed_->second);
    if (phase_ < phases_) return {};
    const bool receives =
        call_.run.collective == Collective::kAllReduce || call_.rank == call_.run.root;
    return {.kind = SimFate::Kind::kDone, .delivery = receives ? Whole(out_) : SimDelivery{}};
  }

 private:
  struct Span {
    std::size_t offset;
    std::size_t bytes;
  };
  struct Slot {  // of the two steps in flight
    std::size_t send = 0;
    std::size_t receive = 0;
  };

  // Segment number `first * per_rank + step`, around the ring, as far as this rank's data goes.
  Span At(std::size_t first, std::size_t step) const {
    const std::size_t all = per_rank_ * ranks_;
    const std::size_t offset = (first * per_rank_ + step) % all * segment_;
    return {offset, offset >= total_ ? 0 : std::min(segment_, total_ - offset)};
  }
  Span SendAt(std::size_t step) const { return At(rank() + (phase_ == 0 ? 1 : 0), step); }
  Span ReceiveAt(std::size_t step) const { return At(rank() + (phase_ == 0 ? 2 : 1), step); }
  std::size_t rank() const { return static_cast<std::size_t>(call_.rank); }

  void Begin(std::size_t step) {
    Slot& slot = slots_[step % 2];
    const int next = (call_.rank + 1) % call_.size;
    const int previous = (call_.rank + call_.size - 1) % call_.size;
    const Span receive = ReceiveAt(step);
    std::byte* room = phase_ == 0 ? rooms_[step % 2].data() : out_.data() + receive.offset;
    if (receive.bytes > 0) slot.receive = wires_.Receive(call_.rank, next, room, receive.bytes);
    const Span send = SendAt(step);
    if (send.bytes > 0) {
      slot.send = wires_.Send(call_.rank, previous, out_.data() + send.offset, send.bytes);
    }
  }

  bool Finish(std::size_t step) {
    const Slot& slot = slots_[step % 2];
    const Span receive = ReceiveAt(step);
    if (receive.bytes > 0) {
      const Wires::Part& part = wires_.At(slot.receive);
      if (!part.done) return false;
      if (part.bytes > receive.bytes) {
        crashed_ = {part.bytes, receive.bytes};
        return false;  // and so ever after
      }
    }
    if (SendAt(step).bytes > 0 && !wires_.At(slot.send).done) return false;
    if (receive.bytes > 0 && phase_ == 0) {
      CombineInto(call_, out_.data() + receive.offset, rooms_[step % 2].data(), receive.bytes);
    }
    return true;
  }

  const SimCall& call_;
  Wires& wires_;
  std::size_t ranks_;
  std::size_t total_;
  std::size_t per_rank_ = 0;  // segments
  std::size_t segment_ = 0;   // bytes
  std::vector<std::byte> out_;
  std::array<std::vector<std::byte>, 2> rooms_;
  std::array<Slot, 2> slots_;
  int phase_ = 0;  // 0: reduce-scatter, 1: all-gather
  int phases_ = 2;
  std::size_t step_ = 0;
  std::optional<std::pair<std::size_t, std::size_t>> crashed_;  // bytes sent, room
};

}  // namespace

std::vector<SimFate> FatesOfGlooRing(const SimCalls& calls) { return FatesOf<RingRank>(calls); }

}  // namespace lockstep::comm::sim
