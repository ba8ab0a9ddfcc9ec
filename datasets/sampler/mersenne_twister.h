// MT19937, block by block: the engine of torch.Generator on CPUs, std::mt19937 bit for bit
// (Matsumoto and Nishimura 1998). A block is what one pass over the state yields; blocks are
// vectorised where the machine can, and a copied state can be run again from there.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::datasets::sampler {

class MersenneTwister {
 public:
  static constexpr int kBlock = 624;
  using Draws = std::array<std::uint32_t, kBlock>;

  // torch.Generator.manual_seed: only the low 32 bits of a seed count.
  explicit MersenneTwister(std::uint64_t seed);

  // Passes over the next block without computing its draws.
  void SkipBlock();
  // The next 624 draws.
  void NextBlock(Draws& draws);

 private:
  Draws state_;
};

// Draw by draw, for what needs few of them.
class TorchGenerator {
 public:
  explicit TorchGenerator(std::uint64_t seed) : twister_(seed) {}
  std::uint32_t Next32() {
    if (used_ == MersenneTwister::kBlock) {
      twister_.NextBlock(draws_);
      used_ = 0;
    }
    return draws_[static_cast<std::size_t>(used_++)];
  }
  // CPUGeneratorImpl::random64: the first draw is the high half.
  std::uint64_t Next64() {
    const std::uint64_t high = Next32();
    return high << 32 | Next32();
  }

 private:
  MersenneTwister twister_;
  MersenneTwister::Draws draws_;
  int used_ = MersenneTwister::kBlock;
};

}  // namespace lockstep::datasets::sampler
