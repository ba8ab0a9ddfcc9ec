// The one source of random numbers: seeded from the plan, stored in the file, the same everywhere.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep {

// Mixes 64 bits; SplitMix64's finalizer (Steele, Lea, Flood 2014, "Fast splittable PRNGs").
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// SplitMix64. Not for cryptography.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    const std::uint64_t value = Mix64(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return value;
  }
  // Uniform in [0, bound), bound > 0; multiply-shift (the bias of < bound / 2^64 does not matter).
  std::uint64_t Below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Fisher-Yates.
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace lockstep
