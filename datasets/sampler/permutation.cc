// Two ways to torch.randperm: all steps forwards, or only the wanted positions traced backwards.
// Both prefetch 48 steps ahead, since accesses are random. Tracing touches n/world positions and
// keeps a bit for the others.
#include "datasets/sampler/permutation.h"

#include <algorithm>
#include <cstddef>

#include "datasets/sampler/token_map.h"

namespace lockstep::datasets::sampler {
namespace {

constexpr std::size_t kAhead = 48;  // steps by which memory is asked for beforehand

template <typename Position>
void WalkForwards(const typename ShuffleSteps<Position>::Piece& piece, ShuffleRule rule,
                  Position* r) {
  const std::size_t count = piece.targets.size();
  for (std::size_t k = 0; k < count; ++k) {
    if (k + kAhead < count) __builtin_prefetch(&r[piece.targets[k + kAhead]], 1);
    const auto i = static_cast<std::size_t>(piece.first) + k;
    const Position target = piece.targets[k];
    if (rule == ShuffleRule::kForward) {
      std::swap(r[i], r[target]);
    } else {
      r[i] = r[target];
      r[target] = static_cast<Position>(i);
    }
  }
}

// The wanted positions in descending order, one after the other.
class Descending {
 public:
  Descending(const Wanted& wanted, std::int64_t n) : world_(wanted.world) {
    const std::int64_t last = wanted.rank + (wanted.count - 1) * wanted.world;
    const bool wraps = wanted.count > 0 && last >= n;
    wrapped_ = wraps ? last % n : kNone;
    wrapped_token_ = wraps ? wanted.count - 1 : kNone;
    regular_token_ = wanted.count - 1 - (wraps ? 1 : 0);
    regular_ = regular_token_ < 0 ? kNone : wanted.rank + regular_token_ * world_;
  }
  // kNone: there are no more.
  std::int64_t position() const { return std::max(regular_, wrapped_); }
  std::int64_t token() const { return regular_ > wrapped_ ? regular_token_ : wrapped_token_; }
  void Advance() {
    if (regular_ > wrapped_) {
      regular_ = --regular_token_ < 0 ? kNone : regular_ - world_;
    } else {
      wrapped_ = kNone;
    }
  }

  static constexpr std::int64_t kNone = -1;

 private:
  std::int64_t world_;
  std::int64_t regular_;
  std::int64_t regular_token_;
  std::int64_t wrapped_;
  std::int64_t wrapped_token_;
};

// A step that swapped i and target: what lies on either goes to the other. Steps after i never
// touched position i, so a wanted i has its token there, and tokens need not be laid out before.
template <typename Position>
void UndoForward(const typename ShuffleSteps<Position>::Piece& piece, Descending& wanted,
                 TokenMap<Position>& tokens) {
  for (std::size_t k = piece.targets.size(); k-- > 0;) {
    if (k >= kAhead) tokens.Prefetch(piece.targets[k - kAhead]);
    const Position target = piece.targets[k];
    const std::int64_t i = piece.first + static_cast<std::int64_t>(k);
    const bool occupied = tokens.Has(target);
    if (!occupied && i != wanted.position()) [[likely]]
      continue;
    const Position moved = occupied ? tokens.Take(target) : Position{};
    if (i == wanted.position()) {
      tokens.Put(target, static_cast<Position>(wanted.token()));
      wanted.Advance();
    }
    if (occupied) tokens.Put(static_cast<Position>(i), moved);
  }
}

// A step that copied target's content to i and wrote the value i to target.
template <typename Position>
void UndoInsideOut(const typename ShuffleSteps<Position>::Piece& piece, TokenMap<Position>& tokens,
                   HugeArray<Position>& values) {
  for (std::size_t k = piece.targets.size(); k-- > 0;) {
    if (k >= kAhead) tokens.Prefetch(piece.targets[k - kAhead]);
    const Position target = piece.targets[k];
    const auto i = static_cast<Position>(static_cast<std::uint64_t>(piece.first) + k);
    if (tokens.Has(target)) [[unlikely]]
      values[tokens.Take(target)] = i;
    if (target != i && tokens.Has(i)) [[unlikely]]
      tokens.Put(target, tokens.Take(i));
  }
}

}  // namespace

template <typename Position>
Result<HugeArray<Position>> WholePermutation(const Shuffle& shuffle) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto r,
                            HugeArray<Position>::Allocate(static_cast<std::uint64_t>(shuffle.n),
                                                          "the permutation of the samples"));
  if (shuffle.rule == ShuffleRule::kForward) {
    for (std::uint64_t i = 0; i < r.size(); ++i) r[i] = static_cast<Position>(i);
  }
  ShuffleSteps<Position> steps(shuffle, /*backwards=*/false);
  typename ShuffleSteps<Position>::Piece piece;
  while (steps.Next(piece)) WalkForwards<Position>(piece, shuffle.rule, r.data());
  return r;
}

template <typename Position>
Result<HugeArray<Position>> TracedPermutation(const Shuffle& shuffle, const Wanted& wanted) {
  const auto count = static_cast<std::uint64_t>(wanted.count);
  LOCKSTEP_ASSIGN_OR_RETURN(auto values,
                            HugeArray<Position>::Allocate(count, "the indices of the rank"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto tokens, TokenMap<Position>::Create(static_cast<std::uint64_t>(shuffle.n), count));
  Descending next(wanted, shuffle.n);
  const bool forward = shuffle.rule == ShuffleRule::kForward;
  while (next.position() != Descending::kNone && (!forward || next.position() == shuffle.n - 1)) {
    tokens.Put(static_cast<Position>(next.position()), static_cast<Position>(next.token()));
    next.Advance();  // the last position has no step of its own
  }
  ShuffleSteps<Position> steps(shuffle, /*backwards=*/true);
  typename ShuffleSteps<Position>::Piece piece;
  while (steps.Next(piece)) {
    if (forward)
      UndoForward<Position>(piece, next, tokens);
    else
      UndoInsideOut<Position>(piece, tokens, values);
  }
  tokens.ForEach([&values](Position position, Position token) { values[token] = position; });
  return values;
}

template Result<HugeArray<std::uint32_t>> WholePermutation(const Shuffle&);
template Result<HugeArray<std::uint64_t>> WholePermutation(const Shuffle&);
template Result<HugeArray<std::uint32_t>> TracedPermutation(const Shuffle&, const Wanted&);
template Result<HugeArray<std::uint64_t>> TracedPermutation(const Shuffle&, const Wanted&);

}  // namespace lockstep::datasets::sampler
