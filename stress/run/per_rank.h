// A value for each rank, indexed by rank: ranks are ints, indices of the standard library are not.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::stress::run {

template <typename T>
class PerRank {
 public:
  PerRank() = default;
  explicit PerRank(int ranks, const T& value = T())
      : values_(static_cast<std::size_t>(ranks), value) {}

  T& operator[](int rank) { return values_[static_cast<std::size_t>(rank)]; }
  const T& operator[](int rank) const { return values_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(values_.size()); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  // What `of` says of each, in the order of the ranks.
  template <typename Of>
  auto Map(Of of) const {
    std::vector<decltype(of(values_.front()))> mapped;
    for (const T& value : values_) mapped.push_back(of(value));
    return mapped;
  }

 private:
  std::vector<T> values_;
};

// The element of a rank in what holds one a rank, in their order.
template <typename Values>
decltype(auto) OfRank(Values& values, int rank) {
  return values[static_cast<std::size_t>(rank)];
}

}  // namespace lockstep::stress::run
