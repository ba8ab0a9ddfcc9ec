// Computes the targets of randperm's exchanges in pieces that fit a second-level cache. A second
// thread computes the next piece. Remainders are taken in double, which is exact below 2^32 and can
// be vectorised.
#include "datasets/sampler/shuffle_steps.h"

#include <algorithm>
#include <type_traits>

namespace lockstep::datasets::sampler {
namespace {

constexpr std::int64_t kBlocks = 512;  // of a piece: 1.3 MB of 32-bit targets, within L2

// targets[k] = first + k + draws[k] % (n - first - k). Quotient and remainder in double are exact:
// with both numbers below 2^32 a quotient is at least 1/divisor below the next integer, which is
// more than half a unit in its last place. For divisors from 2 on it also fits 31 bits, which is
// what old instruction sets can convert.
[[gnu::always_inline]] inline void ForwardInline(const std::uint32_t* draws, std::uint32_t first,
                                                 std::uint32_t n, std::uint32_t* targets) {
  constexpr double kHalf = 2147483648.0;  // conversions are of signed numbers
#pragma GCC ivdep
  for (std::uint32_t k = 0; k < MersenneTwister::kBlock; ++k) {
    const std::uint32_t room = n - first - k;
    const double divisor =
        static_cast<double>(static_cast<std::int32_t>(room ^ 0x80000000u)) + kHalf;
    const double draw =
        static_cast<double>(static_cast<std::int32_t>(draws[k] ^ 0x80000000u)) + kHalf;
    const double quotient = static_cast<double>(static_cast<std::int32_t>(draw / divisor));
    const double rest = draw - quotient * divisor - kHalf;
    targets[k] =
        first + k + (static_cast<std::uint32_t>(static_cast<std::int32_t>(rest)) ^ 0x80000000u);
  }
}

void ForwardPortable(const std::uint32_t* draws, std::uint32_t first, std::uint32_t n,
                     std::uint32_t* targets) {
  ForwardInline(draws, first, n, targets);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void ForwardAvx2(const std::uint32_t* draws, std::uint32_t first,
                                         std::uint32_t n, std::uint32_t* targets) {
  ForwardInline(draws, first, n, targets);
}
[[gnu::target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")]] void ForwardAvx512(
    const std::uint32_t* draws, std::uint32_t first, std::uint32_t n, std::uint32_t* targets) {
  ForwardInline(draws, first, n, targets);
}
const auto Forward = __builtin_cpu_supports("avx512dq") ? ForwardAvx512
                     : __builtin_cpu_supports("avx2")   ? ForwardAvx2
                                                        : ForwardPortable;
#else
const auto Forward = ForwardPortable;
#endif

std::int64_t StepsOfBlock(ShuffleRule rule) {
  return rule == ShuffleRule::kForward ? MersenneTwister::kBlock : MersenneTwister::kBlock / 2;
}

// The first `count` targets of a block whose first step is `first`.
template <typename Position>
void BlockTargets(const Shuffle& shuffle, const MersenneTwister::Draws& draws, std::int64_t first,
                  std::int64_t count, Position* targets) {
  const auto n = static_cast<std::uint64_t>(shuffle.n);
  const auto start = static_cast<std::uint64_t>(first);
  const auto steps = static_cast<std::uint64_t>(count);
  if (shuffle.rule == ShuffleRule::kInsideOut) {
    for (std::uint64_t k = 0; k < steps; ++k) {
      const std::uint64_t draw = std::uint64_t{draws[2 * k]} << 32 | draws[2 * k + 1];
      targets[k] = static_cast<Position>(draw % (start + k + 1));
    }
    return;
  }
  if constexpr (std::is_same_v<Position, std::uint32_t>) {
    if (count == MersenneTwister::kBlock) {
      Forward(draws.data(), static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(n),
              targets);
      return;
    }
  }
  for (std::uint64_t k = 0; k < steps; ++k) {
    targets[k] = static_cast<Position>(start + k + draws[k] % (n - start - k));
  }
}

}  // namespace

template <typename Position>
ShuffleSteps<Position>::ShuffleSteps(const Shuffle& shuffle, bool backwards)
    : shuffle_(shuffle), backwards_(backwards) {
  const std::int64_t piece_steps = kBlocks * StepsOfBlock(shuffle.rule);
  pieces_ = (shuffle.steps() + piece_steps - 1) / piece_steps;
  MersenneTwister twister(shuffle.seed);
  states_.reserve(static_cast<std::size_t>(pieces_));
  for (std::int64_t piece = 0; piece < pieces_; ++piece) {
    states_.push_back(twister);
    for (std::int64_t block = 0; block < kBlocks && piece + 1 < pieces_; ++block) {
      twister.SkipBlock();
    }
  }
  if (pieces_ > 0) Start(0);
}

template <typename Position>
ShuffleSteps<Position>::~ShuffleSteps() {
  if (ahead_.valid()) ahead_.wait();  // it writes into our memory; bounded: one piece
}

template <typename Position>
void ShuffleSteps<Position>::Start(std::int64_t number) {
  const std::int64_t piece = backwards_ ? pieces_ - 1 - number : number;
  std::vector<Position>& targets = targets_[number % 3];
  // Deferred where no thread can be had: then it is computed when it is asked for. A single piece
  // is not worth a thread.
  const auto policy =
      pieces_ == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred;
  ahead_ = std::async(policy, [this, piece, &targets] { Fill(piece, targets); });
  started_ = number + 1;
}

template <typename Position>
void ShuffleSteps<Position>::Fill(std::int64_t piece, std::vector<Position>& targets) const {
  const std::int64_t block_steps = StepsOfBlock(shuffle_.rule);
  const std::int64_t begin = piece * kBlocks * block_steps;
  const std::int64_t count = std::min(kBlocks * block_steps, shuffle_.steps() - begin);
  targets.resize(static_cast<std::size_t>(count));
  MersenneTwister twister = states_[static_cast<std::size_t>(piece)];
  MersenneTwister::Draws draws;
  for (std::int64_t done = 0; done < count; done += block_steps) {
    twister.NextBlock(draws);
    BlockTargets(shuffle_, draws, begin + done, std::min(block_steps, count - done),
                 targets.data() + done);
  }
}

template <typename Position>
bool ShuffleSteps<Position>::Next(Piece& piece) {
  if (!ahead_.valid()) return false;
  ahead_.get();
  const std::int64_t number = started_ - 1;
  const std::int64_t index = backwards_ ? pieces_ - 1 - number : number;
  piece = {.first = index * kBlocks * StepsOfBlock(shuffle_.rule), .targets = targets_[number % 3]};
  if (started_ < pieces_) Start(started_);
  return true;
}

template class ShuffleSteps<std::uint32_t>;
template class ShuffleSteps<std::uint64_t>;

}  // namespace lockstep::datasets::sampler
