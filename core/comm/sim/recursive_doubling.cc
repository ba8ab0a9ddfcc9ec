// Plays Open MPI's recursive doubling with each rank's own count, type and reduction. It follows
// coll_base_allreduce.c, down to which buffer holds the left operand.
#include <bit>
#include <cstddef>
#include <utility>

#include "core/comm/sim/mismatch.h"

namespace lockstep::comm::sim {
namespace {

class DoublingRank {
 public:
  DoublingRank(const SimCall& call, std::int64_t eager_bytes, Wires& wires)
      : call_(call), eager_bytes_(eager_bytes), wires_(wires), bytes_(call.BlockSize()) {
    const auto* send = static_cast<const std::byte*>(call.buffers.send);
    own_.assign(send, send + bytes_);
    came_ = HeldBefore(call, bytes_);
    Plan();
  }

  bool Step() {
    if (truncated_ || step_ == steps_.size()) return false;
    const Exchange& exchange = steps_[step_];
    if (!begun_) return begun_ = Begin(exchange);
    const bool eager = static_cast<std::int64_t>(bytes_) <= eager_bytes_;
    if (exchange.receives && !wires_.At(receive_).done) return false;
    if (exchange.receives && wires_.At(receive_).bytes > bytes_) return truncated_ = true;
    if (exchange.sends && !eager && !wires_.At(send_).done) return false;
    Combine(exchange);
    begun_ = false;
    ++step_;
    return true;
  }

  SimFate fate() const {
    if (truncated_) return Truncated(Whole(came_));
    if (step_ < steps_.size()) return {};
    return {.kind = SimFate::Kind::kDone, .delivery = Whole(own_)};
  }

 private:
  struct Exchange {
    int peer = 0;
    bool sends = false;
    bool receives = false;
    bool is_result = false;  // what comes is not combined
  };

  void Plan() {
    const int rank = call_.rank;
    const int pairs = static_cast<int>(std::bit_floor(static_cast<unsigned>(call_.size)));
    const int extra = call_.size - pairs;
    const bool folded = rank < 2 * extra;
    if (folded && rank % 2 == 0) {
      steps_ = {{rank + 1, true, false, false}, {rank + 1, false, true, true}};
      return;
    }
    if (folded) steps_.push_back({rank - 1, false, true, false});
    const int place = folded ? rank / 2 : rank - extra;
    for (int distance = 1; distance < pairs; distance *= 2) {
      const int other = place ^ distance;
      steps_.push_back({other < extra ? other * 2 + 1 : other + extra, true, true, false});
    }
    if (folded) steps_.push_back({rank - 1, true, false, false});
  }

  bool Begin(const Exchange& exchange) {
    if (exchange.receives) {
      receive_ = wires_.Receive(call_.rank, exchange.peer, came_.data(), bytes_);
    }
    if (exchange.sends) send_ = wires_.Send(call_.rank, exchange.peer, own_.data(), bytes_);
    return true;
  }

  // The lower rank's part is on the left, and what came is where the result goes then: so the two
  // buffers change roles, as in Open MPI.
  void Combine(const Exchange& exchange) {
    if (!exchange.receives) return;
    if (exchange.is_result) {
      own_ = came_;
    } else if (call_.rank < exchange.peer) {
      std::vector<std::byte> left = own_;
      CombineInto(call_, left.data(), came_.data(), bytes_);
      came_ = std::exchange(own_, std::move(left));
    } else {
      std::vector<std::byte> left = came_;
      CombineInto(call_, left.data(), own_.data(), bytes_);
      own_ = std::move(left);
    }
  }

  const SimCall& call_;
  std::int64_t eager_bytes_;
  Wires& wires_;
  std::size_t bytes_;
  std::vector<std::byte> own_;
  std::vector<std::byte> came_;
  std::vector<Exchange> steps_;
  std::size_t step_ = 0;
  bool begun_ = false;
  bool truncated_ = false;
  std::size_t send_ = 0;
  std::size_t receive_ = 0;
};

}  // namespace

std::vector<SimFate> FatesOfRecursiveDoubling(const SimCalls& calls, std::int64_t eager_bytes) {
  return FatesOf<DoublingRank>(calls, eager_bytes);
}

}  // namespace lockstep::comm::sim
