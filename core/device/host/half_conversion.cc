// Converts ranges of 16-bit floats by F16C and AVX2, which are looked for when the program runs.
// What vectors leave over goes through core/collective/half.h, which gives the same bits.
#include <immintrin.h>

#include <bit>

#include "core/collective/half.h"
#include "core/device/host/host_kernels.h"

namespace lockstep::device::host {
namespace {

constexpr std::int64_t kLanes = 8;

bool HasF16c() {
  static const bool has = __builtin_cpu_supports("f16c") && __builtin_cpu_supports("avx");
  return has;
}

// Both return how many elements they did.
[[gnu::target("avx,f16c")]] std::int64_t FloatsFromF16Vectors(const std::uint16_t* from, float* to,
                                                              std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  return i;
}

[[gnu::target("avx,f16c")]] std::int64_t F16FromFloatsVectors(const float* from, std::uint16_t* to,
                                                              std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

// Bf16FromFloat without a branch, for a compiler to vectorise.
[[gnu::always_inline]] inline void NarrowToBf16(const float* from, std::uint16_t* to,
                                                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const std::uint32_t quiet = bits | 0x400000u;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    to[i] = static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16);
  }
}

[[gnu::target("avx2")]] void NarrowToBf16Avx2(const float* from, std::uint16_t* to,
                                              std::int64_t count) {
  NarrowToBf16(from, to, count);
}

}  // namespace

void FloatsFromF16(const std::uint16_t* from, float* to, std::int64_t count) {
  std::int64_t i = HasF16c() ? FloatsFromF16Vectors(from, to, count) : 0;
  for (; i < count; ++i) to[i] = collective::FloatFromF16(from[i]);
}

void F16FromFloats(const float* from, std::uint16_t* to, std::int64_t count) {
  std::int64_t i = HasF16c() ? F16FromFloatsVectors(from, to, count) : 0;
  for (; i < count; ++i) to[i] = collective::F16FromFloat(from[i]);
}

void FloatsFromBf16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = collective::FloatFromBf16(from[i]);
}

void Bf16FromFloats(const float* from, std::uint16_t* to, std::int64_t count) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  has_avx2 ? NarrowToBf16Avx2(from, to, count) : NarrowToBf16(from, to, count);
}

}  // namespace lockstep::device::host
