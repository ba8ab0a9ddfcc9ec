// MT19937 in blocks that vectors can compute. The state's recurrence reaches back 227 places, so a
// block takes three loops. AVX2 is chosen when the program runs.
#include "datasets/sampler/mersenne_twister.h"

namespace lockstep::datasets::sampler {
namespace {

constexpr int kMiddle = 397;

[[gnu::always_inline]] inline std::uint32_t Twisted(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
  return (y >> 1) ^ ((0u - (b & 1u)) & 0x9908b0dfu);
}

// In three loops, because an element needs that of 227 places before: within a loop nothing
// that is read was written less than a vector before.
[[gnu::always_inline]] inline void TwistInline(std::uint32_t* state) {
  constexpr int kBlock = MersenneTwister::kBlock;
  constexpr int kFirst = kBlock - kMiddle;
#pragma GCC ivdep
  for (int k = 0; k < kFirst; ++k) {
    state[k] = state[k + kMiddle] ^ Twisted(state[k], state[k + 1]);
  }
#pragma GCC ivdep
  for (int k = kFirst; k < 2 * kFirst; ++k) {
    state[k] = state[k - kFirst] ^ Twisted(state[k], state[k + 1]);
  }
#pragma GCC ivdep
  for (int k = 2 * kFirst; k < kBlock - 1; ++k) {
    state[k] = state[k - kFirst] ^ Twisted(state[k], state[k + 1]);
  }
  state[kBlock - 1] = state[kMiddle - 1] ^ Twisted(state[kBlock - 1], state[0]);
}

[[gnu::always_inline]] inline void TemperInline(const std::uint32_t* state, std::uint32_t* draws) {
#pragma GCC ivdep
  for (int k = 0; k < MersenneTwister::kBlock; ++k) {
    std::uint32_t y = state[k];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    draws[k] = y ^ (y >> 18);
  }
}

void TwistPortable(std::uint32_t* state) { TwistInline(state); }
void TemperPortable(const std::uint32_t* state, std::uint32_t* draws) {
  TemperInline(state, draws);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void TwistAvx2(std::uint32_t* state) { TwistInline(state); }
[[gnu::target("avx2")]] void TemperAvx2(const std::uint32_t* state, std::uint32_t* draws) {
  TemperInline(state, draws);
}
const bool kAvx2 = __builtin_cpu_supports("avx2");
const auto Twist = kAvx2 ? TwistAvx2 : TwistPortable;
const auto Temper = kAvx2 ? TemperAvx2 : TemperPortable;
#else
const auto Twist = TwistPortable;
const auto Temper = TemperPortable;
#endif

}  // namespace

MersenneTwister::MersenneTwister(std::uint64_t seed) {
  state_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < kBlock; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
}

void MersenneTwister::SkipBlock() { Twist(state_.data()); }

void MersenneTwister::NextBlock(Draws& draws) {
  Twist(state_.data());
  Temper(state_.data(), draws.data());
}

}  // namespace lockstep::datasets::sampler
