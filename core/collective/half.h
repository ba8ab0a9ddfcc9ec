// The two 16-bit floating-point types as bit patterns, and their exact conversions.
//
// f16 is IEEE 754 binary16 (1 sign, 5 exponent, 10 fraction bits); bf16 is the upper half of a
// binary32 (1, 8, 7). Conversion to float is exact; conversion from float rounds to nearest, ties
// to even, overflows to infinity, and keeps a NaN a (quiet) NaN with the upper bits of its payload.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::collective {

inline float FloatFromF16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: fraction units of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide_exponent = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

inline std::uint16_t F16FromFloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 2^16
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal, in units of 2^-24: that is the last place of 0.5f, so
    // the addition rounds exactly there.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1u);  // ties to even; may carry into the exponent
  return static_cast<std::uint16_t>(sign | ((magnitude - (112u << 23)) >> 13));
}

inline float FloatFromBf16(std::uint16_t brain) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(brain) << 16);
}

inline std::uint16_t Bf16FromFloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace lockstep::collective
