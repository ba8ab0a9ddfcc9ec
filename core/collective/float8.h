// The two 8-bit floating-point types of NCCL as bit patterns, and their conversions.
//
// f8e4m3 has 1 sign, 4 exponent (bias 7) and 3 fraction bits, no infinities and a NaN only where
// all other bits are set: up to 448. f8e5m2 (1, 5, 2) is the upper half of a binary16: up to 57344.
// Conversion to float is exact. Conversion from float rounds to nearest, ties to even, keeps a NaN
// a NaN, and gives the largest finite number where the result does not fit, as CUDA's
// __NV_SATFINITE does, with which NCCL reduces.
// Source: "FP8 Formats for Deep Learning", arXiv:2209.05433; OCP 8-bit Floating Point (OFP8).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/collective/half.h"

namespace lockstep::collective {

// A binary32 rounded to a float of 8 bits with `kFraction` fraction bits, whose smallest normal
// number is 2^kLeast; `largest` are the bits of its largest finite one.
template <int kFraction, int kLeast>
inline std::uint8_t Float8FromFloat(float value, std::uint32_t largest) {
  constexpr int kDropped = 23 - kFraction;
  constexpr std::uint32_t kNormal = static_cast<std::uint32_t>(127 + kLeast) << 23;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(sign | 0x7fu);  // NaN
  if (magnitude < kNormal) {
    // Subnormal, in units of 2^(kLeast - kFraction): the last place of this addend, so the addition
    // rounds exactly there.
    constexpr std::uint32_t kAddend = kNormal + (static_cast<std::uint32_t>(kDropped) << 23);
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAddend);
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - kAddend));
  }
  const std::uint32_t half = (1u << (kDropped - 1)) - 1;
  const std::uint32_t rounded = magnitude + half + ((magnitude >> kDropped) & 1u);
  const std::uint32_t rebased = (rounded - kNormal + (1u << 23)) >> kDropped;
  return static_cast<std::uint8_t>(sign | std::min(rebased, largest));
}

inline float FloatFromF8E4M3(std::uint8_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) {  // zero or subnormal, in units of 2^-9
    const float small = static_cast<float>(magnitude) * 0x1p-9f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(small) | sign);
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

inline std::uint8_t F8E4M3FromFloat(float value) { return Float8FromFloat<3, -6>(value, 0x7e); }

inline float FloatFromF8E5M2(std::uint8_t bits) {
  return FloatFromF16(static_cast<std::uint16_t>(bits << 8));
}

inline std::uint8_t F8E5M2FromFloat(float value) { return Float8FromFloat<2, -14>(value, 0x7b); }

}  // namespace lockstep::collective
