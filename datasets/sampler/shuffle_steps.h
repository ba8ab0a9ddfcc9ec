// The steps of torch.randperm(n) on CPUs: which position each one exchanges.
// Source: pytorch aten/src/ATen/native/TensorFactories.cpp, randperm_cpu, and for the second
// rule pull request 144735, which is in PyTorch since 2.6.0.
#pragma once

#include <cstdint>
#include <future>
#include <span>
#include <vector>

#include "datasets/sampler/mersenne_twister.h"

namespace lockstep::datasets::sampler {

enum class ShuffleRule : std::uint8_t {
  // r[i] = i for all i; then for i = 0 … n-2: swap(r[i], r[i + draw32 % (n - i)]).
  kForward,
  // For i = 0 … n-1, with z = draw64 % (i + 1): r[i] = r[z]; r[z] = i.
  kInsideOut,
};

// From this n on PyTorch 2.6 and newer goes inside out: floor((2^32 - 1) / 20).
inline constexpr std::int64_t kInsideOutFrom = 214'748'364;

struct Shuffle {
  std::int64_t n = 0;
  std::uint64_t seed = 0;
  ShuffleRule rule = ShuffleRule::kForward;
  std::int64_t steps() const { return rule == ShuffleRule::kInsideOut || n == 0 ? n : n - 1; }
};

// The targets (i + draw % (n - i), or z) of all steps, in pieces, in either direction. The next
// piece is computed on a second thread while the caller works on this one. To go backwards the
// generator's state is kept once a piece: 2.5 KB for 300,000 steps. Position is uint32_t for
// n < 2^32, else uint64_t.
template <typename Position>
class ShuffleSteps {
 public:
  ShuffleSteps(const Shuffle& shuffle, bool backwards);
  ~ShuffleSteps();
  ShuffleSteps(const ShuffleSteps&) = delete;
  ShuffleSteps& operator=(const ShuffleSteps&) = delete;

  struct Piece {
    std::int64_t first = 0;                  // the step of targets[0]
    std::span<const Position> targets = {};  // of steps first, first + 1, …; in either direction
  };
  // False: there are no more. A piece is valid until the next call but one.
  bool Next(Piece& piece);

 private:
  void Start(std::int64_t number);
  void Fill(std::int64_t number, std::vector<Position>& targets) const;

  Shuffle shuffle_;
  bool backwards_;
  std::int64_t pieces_;
  std::int64_t started_ = 0;
  std::vector<MersenneTwister> states_;  // before each piece
  std::vector<Position> targets_[3];     // the caller's last two, and the one in the making
  std::future<void> ahead_;
};

extern template class ShuffleSteps<std::uint32_t>;
extern template class ShuffleSteps<std::uint64_t>;

}  // namespace lockstep::datasets::sampler
