// Which token lies on which position: a bit a position, and a hash table of the occupied ones.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/check.h"
#include "core/base/status.h"
#include "datasets/sampler/huge_array.h"

namespace lockstep::datasets::sampler {

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

}  // namespace lockstep::datasets::sampler
