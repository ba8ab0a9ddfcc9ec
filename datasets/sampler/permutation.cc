// Two ways to torch.randperm: all steps forwards, or only the wanted positions traced backwards.
// Both prefetch 48 steps ahead, since accesses are random. Tracing touches n/world positions and
// keeps a bit for the others.
#include "datasets/sampler/permutation.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::datasets::sampler {
namespace {

// Which token lies on which position: a bit a position, and a hash table of the occupied ones.
template <typename Position>
class TokenMap {
 public:
  // For positions 0 … n-1 and at most `count` tokens at a time.
  static Result<TokenMap> Create(std::uint64_t n, std::uint64_t count) {
    TokenMap map;
    LOCKSTEP_ASSIGN_OR_RETURN(map.bits_, HugeArray<std::uint64_t>::Allocate(
                                             n / 64 + 1, "the bits of the shuffled samples"));
    map.slots_ = count + count / 2 + 16;
    LOCKSTEP_ASSIGN_OR_RETURN(
        map.table_, HugeArray<Entry>::Allocate(map.slots_, "the positions of the rank's samples"));
    map.dense_ = n <= map.slots_;
    if (!map.dense_) {
      map.slots_per_position_ =
          static_cast<std::uint64_t>((static_cast<unsigned __int128>(map.slots_) << 64) / n);
    }
    return map;
  }

  bool Has(Position position) const { return bits_[position >> 6] >> (position & 63) & 1; }

  // Asks for the memory of Has(position) beforehand.
  void Prefetch(Position position) const { __builtin_prefetch(&bits_[position >> 6]); }

  // `position` must be free.
  void Put(Position position, Position token) {
    bits_[position >> 6] |= std::uint64_t{1} << (position & 63);
    std::uint64_t slot = Home(position);
    while (table_[slot].used()) slot = After(slot);
    table_[slot] = Entry(position, token);
  }

  // Removes the token that lies there. The entries behind it that are not at home move up, so
  // that no search ends too early (Knuth, The Art of Computer Programming 3, 6.4, algorithm R).
  Position Take(Position position) {
    bits_[position >> 6] &= ~(std::uint64_t{1} << (position & 63));
    std::uint64_t slot = Home(position);
    while (table_[slot].position() != position || !table_[slot].used()) slot = After(slot);
    const Position token = table_[slot].token();
    for (std::uint64_t next = After(slot); !dense_ && table_[next].used(); next = After(next)) {
      const std::uint64_t home = Home(table_[next].position());
      const bool home_between =
          slot <= next ? slot < home && home <= next : slot < home || home <= next;
      if (home_between) continue;
      table_[slot] = table_[next];
      slot = next;
    }
    table_[slot] = Entry();
    return token;
  }

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::uint64_t slot = 0; slot < slots_; ++slot) {
      if (table_[slot].used()) visit(table_[slot].position(), table_[slot].token());
    }
  }

 private:
  // Stored from 1, so that zeroed memory is a free slot. Positions below 2^32 - 1, or 2^64 - 1.
  class Entry {
   public:
    Entry() = default;
    Entry(Position position, Position token) : position_(position + 1), token_(token) {}
    bool used() const { return position_ != 0; }
    Position position() const { return position_ - 1; }
    Position token() const { return token_; }

   private:
    Position position_ = 0;
    Position token_ = 0;
  };

  // In the order of positions: tokens are spread evenly over the positions, and the walk over them
  // puts most tokens near the one before, so that most of the table stays out of the way.
  std::uint64_t Home(Position position) const {
    if (dense_) return position;
    return static_cast<std::uint64_t>(
        static_cast<unsigned __int128>(slots_per_position_) * position >> 64);
  }
  std::uint64_t After(std::uint64_t slot) const { return slot + 1 == slots_ ? 0 : slot + 1; }

  HugeArray<std::uint64_t> bits_;
  HugeArray<Entry> table_;
  std::uint64_t slots_ = 0;
  std::uint64_t slots_per_position_ = 0;  // times 2^64
  bool dense_ = false;                    // a slot for every position: all are at home
};

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
