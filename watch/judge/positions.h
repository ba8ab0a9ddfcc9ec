// Places of a communicator that not all members came to. Mostly the newest is begun and the oldest
// completed, millions of times a second: so they stand in a ring, in their order, and what a place
// had allocated stays with its successor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "watch/events/event.h"

namespace lockstep::watch::judge {

// One place in the order of a communicator's collectives.
struct Position {
  std::uint64_t place = 0;
  events::Event first;
  int first_rank = 0;  // in the world
  int entered = 0;
  bool mismatch = false;       // members called different things here
  std::vector<int> different;  // ranks of the communicator that differ from the first in kind
  std::vector<bool> came;      // by rank of the communicator; empty: who has called as many
};

class Positions {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  // In their order. A reference lives until the next Begin or Erase.
  const Position& operator[](std::size_t number) const { return ring_[At(number)]; }
  Position& operator[](std::size_t number) { return ring_[At(number)]; }

  // How many places lie before this one: its own number, if it is there.
  std::size_t Before(std::uint64_t place) const {
    if (count_ == 0) return 0;
    const std::uint64_t first = (*this)[0].place;
    if (place <= first) return 0;
    if ((*this)[count_ - 1].place < place) return count_;
    // Without gaps its number is known.
    if (place - first < count_ && (*this)[place - first].place == place) return place - first;
    std::size_t low = 0;
    std::size_t high = count_;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      (*this)[middle].place < place ? low = middle + 1 : high = middle;
    }
    return low;
  }
  const Position* Find(std::uint64_t place) const {
    const std::size_t number = Before(place);
    return number < count_ && (*this)[number].place == place ? &(*this)[number] : nullptr;
  }

  // A place that is not there. Of what it held before, only memory is left.
  Position& Begin(std::uint64_t place) {
    const std::size_t number = Before(place);
    if (count_ > mask_ || ring_.empty()) Grow();
    ++count_;
    for (std::size_t each = count_ - 1; each > number; --each) {
      std::swap((*this)[each], (*this)[each - 1]);
    }
    Position& begun = (*this)[number];
    begun.place = place;
    begun.entered = 0;
    begun.mismatch = false;
    begun.different.clear();
    begun.came.clear();
    return begun;
  }

  void Erase(std::uint64_t place) {
    for (std::size_t each = Before(place); each > 0; --each) {
      std::swap((*this)[each], (*this)[each - 1]);
    }
    first_ = At(1);
    --count_;
  }

 private:
  std::size_t At(std::size_t number) const { return (first_ + number) & mask_; }

  void Grow() {
    std::vector<Position> larger(ring_.empty() ? 4 : 2 * ring_.size());
    for (std::size_t each = 0; each < count_; ++each) larger[each] = std::move((*this)[each]);
    ring_ = std::move(larger);
    mask_ = ring_.size() - 1;
    first_ = 0;
  }

  std::vector<Position> ring_;  // its size is 0 or a power of two
  std::size_t mask_ = 0;        // its last index
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace lockstep::watch::judge
