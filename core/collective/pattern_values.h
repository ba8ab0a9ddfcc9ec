// The formulas behind core/collective/pattern.h: which value a rank contributes to an element, and
// what all contributions give, each in a handful of 32-bit instructions that a compiler vectorises
// (the result does not loop over ranks). Internal to pattern.cc and its test.
//
// Each element draws 32 (or 64) random bits. They turn the ranks around a ring of W slots: the rank
// in slot s of an element is another one in every element and iteration, but the multiset of what
// the slots contribute is the same, so its total is a constant, plus the element's own random part,
// which slot 0 (and, for the upper half of 64-bit types, the last slot) adds to its contribution.
//
//   sum      slot s < K contributes a weight 1..2^w, other slots 0; slot 0 adds up to B - 1, where
//            2 B - 2 is exact in the type and the weights sum up to less than B = 2^sum_bits.
//            K = min(W, B - 1): with more ranks than the significand has room for (f8e5m2: 3
//            of them, f8e4m3 7, i8 and u8 63, bf16 127, f16 1023), only K ranks contribute to an
//            element, others in each element, and a missing rank shows in about K of W elements.
//   prod     odd slots contribute -1 (signed types), the first `twos` slots 2, slot 0 another sign
//            and power of two at random. Most factors of u8 are 1, by nature: it can double only 7
//            times.
//   min, max slot 0 contributes the result; every other slot is worse by a random 1..B.
//   copy     all bits random (floats finite; integers not the poison), other ones for each sender.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "core/base/random.h"
#include "core/collective/collective.h"

// Without this, a loop built for AVX2 would call these for every element.
#ifdef __CUDACC__
#define LOCKSTEP_INLINE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_INLINE [[gnu::always_inline]] inline
#endif

namespace lockstep::collective {

// What a type has room for. `order_bits`: min and max use [offset - 2^order_bits, offset +
// 2^order_bits]. `wide_bits`: further bits above the 32-bit part, 0 for types of up to 32 bits.
struct PatternRange {
  int sum_bits;
  int order_bits;
  int order_offset;
  int exponent_max;
  int wide_bits;
  bool is_signed;
};

// One row a type, in the order of the enumeration.
constexpr std::array<PatternRange, kDataTypeCount> kPatternRanges = {
    {{10, 10, 0, 14, 0, true},   // f16
     {7, 7, 0, 30, 0, true},     // bf16
     {23, 23, 0, 30, 0, true},   // f32
     {23, 23, 0, 30, 28, true},  // f64
     {6, 6, 0, 6, 0, true},      // i8
     {30, 30, 0, 30, 0, true},   // i32
     {30, 30, 0, 30, 31, true},  // i64
     {6, 6, 128, 7, 0, false},   // u8
     {3, 3, 0, 7, 0, true},      // f8e4m3
     {2, 2, 0, 14, 0, true}}};   // f8e5m2

// The constants of one operation on a communicator of `world` ranks.
struct PatternTerms {
  std::uint32_t world = 1;
  std::uint32_t contributors = 1;  // K
  std::uint32_t weight_mask = 0;   // 2^w - 1
  std::int32_t weight_total = 0;   // over all slots
  std::uint32_t extra_mask = 0;    // B - 1
  std::uint32_t wide_mask = 0;
  std::uint32_t order_mask = 0;
  std::int32_t order_offset = 0;
  std::int32_t order_flip = 0;  // all ones: worse is less (max); 0: worse is more (min)
  std::uint32_t twos = 0;
  std::uint32_t exponent_mask = 0;
  std::uint32_t sign_mask = 0;  // 1: signed
};

// An integer, lo + hi * 2^k, where k depends on the (64-bit) type; hi is unused in narrower types.
struct PatternValue {
  std::int32_t lo = 0;
  std::int32_t hi = 0;
};

struct PatternBits {
  std::uint32_t lo;
  std::uint32_t hi;
};

// Random bits of an element: the lowbias32 mixer of C. Wellons ("Prospecting for Hash Functions",
// 2018, public domain) of `weyl`, the lower half of the block's key plus index * kWeylStep (which a
// loop adds up instead of multiplying), stirred with the upper half.
constexpr std::uint32_t kWeylStep = 0x9e3779b1u;
LOCKSTEP_INLINE PatternBits DrawBits(std::uint32_t weyl, std::uint32_t upper_key) {
  std::uint32_t lo = weyl;
  lo ^= lo >> 16;
  lo *= 0x7feb352du;
  lo ^= (lo >> 15) ^ upper_key;
  lo *= 0x846ca68bu;
  lo ^= lo >> 16;
  std::uint32_t hi = (lo ^ 0x5bd1e995u) * 0x9e3779b1u;
  hi ^= hi >> 15;
  return {lo, hi};
}

// The key of a block of elements of a random stream.
LOCKSTEP_INLINE std::uint64_t PatternKey(std::uint64_t stream, std::int64_t block) {
  return Mix64(stream + static_cast<std::uint64_t>(block));
}

// All ones if the condition holds, else 0: a mask instead of a branch.
LOCKSTEP_INLINE std::uint32_t MaskIf(bool condition) {
  return 0u - static_cast<std::uint32_t>(condition);
}

LOCKSTEP_INLINE std::uint32_t SlotOf(std::uint32_t rank, std::uint32_t world, PatternBits bits) {
  const std::uint32_t slot = rank + (((bits.lo >> 16) * world) >> 16);  // world <= 2^16
  return std::min(slot, slot - world);  // slot - world wraps to a huge number if slot < world
}

LOCKSTEP_INLINE std::int32_t WeightOf(const PatternTerms& terms, std::uint32_t slot) {
  const std::uint32_t weight = 1 + ((slot | slot << 12) & terms.weight_mask);
  return static_cast<std::int32_t>(weight & MaskIf(slot < terms.contributors));
}

struct SumRule {
  LOCKSTEP_INLINE static PatternValue Contribution(const PatternTerms& terms, std::uint32_t slot,
                                                   PatternBits bits) {
    const std::uint32_t extra = bits.lo & terms.extra_mask & MaskIf(slot == 0);
    const std::uint32_t wide = bits.hi & terms.wide_mask & MaskIf(slot == terms.world - 1);
    return {WeightOf(terms, slot) + static_cast<std::int32_t>(extra),
            static_cast<std::int32_t>(wide)};
  }
  LOCKSTEP_INLINE static PatternValue Result(const PatternTerms& terms, PatternBits bits) {
    return {terms.weight_total + static_cast<std::int32_t>(bits.lo & terms.extra_mask),
            static_cast<std::int32_t>(bits.hi & terms.wide_mask)};
  }
};

struct ProdRule {
  LOCKSTEP_INLINE static PatternValue Signed(std::uint32_t exponent, std::uint32_t negative) {
    const auto magnitude = static_cast<std::int32_t>(1u << exponent);
    const auto flip = -static_cast<std::int32_t>(negative);  // all ones or none
    return {(magnitude ^ flip) - flip, 0};
  }
  LOCKSTEP_INLINE static PatternValue Contribution(const PatternTerms& terms, std::uint32_t slot,
                                                   PatternBits bits) {
    const std::uint32_t own = MaskIf(slot == 0);
    const std::uint32_t two = slot < terms.twos ? 1 : 0;
    return Signed(two + (bits.lo & terms.exponent_mask & own),
                  (slot ^ ((bits.lo >> 8) & own)) & terms.sign_mask);
  }
  LOCKSTEP_INLINE static PatternValue Result(const PatternTerms& terms, PatternBits bits) {
    const std::uint32_t odd_slots = terms.world / 2;
    return Signed(terms.twos + (bits.lo & terms.exponent_mask),
                  (odd_slots ^ (bits.lo >> 8)) & terms.sign_mask);
  }
};

struct OrderRule {  // min and max
  LOCKSTEP_INLINE static PatternValue Result(const PatternTerms& terms, PatternBits bits) {
    const std::uint32_t range = 2 * terms.order_mask + 1;
    const auto lo = static_cast<std::int32_t>(bits.lo & range) -
                    static_cast<std::int32_t>(terms.order_mask + 1) + terms.order_offset;
    const std::uint32_t wide_sign = (0u - (bits.lo >> 31)) & ~terms.wide_mask;
    return {lo, static_cast<std::int32_t>((bits.hi & terms.wide_mask) | wide_sign)};
  }
  LOCKSTEP_INLINE static PatternValue Contribution(const PatternTerms& terms, std::uint32_t slot,
                                                   PatternBits bits) {
    const std::uint32_t mixed = (bits.lo >> 7) + (slot | slot << 12);
    const auto worse = 1 + static_cast<std::int32_t>(mixed & terms.order_mask);
    PatternValue value = Result(terms, bits);
    const auto loses = static_cast<std::int32_t>(MaskIf(slot != 0));
    value.lo += ((worse ^ terms.order_flip) - terms.order_flip) & loses;
    return value;
  }
};

struct CopyRule {};

// How a type writes an integer or (copies) random bits.
template <DataType kType>
struct PatternEncoding;

template <>
struct PatternEncoding<DataType::kF32> {
  using Word = float;
  LOCKSTEP_INLINE static Word FromValue(PatternValue value) { return static_cast<float>(value.lo); }
  LOCKSTEP_INLINE static Word FromBits(PatternBits bits) {
    return std::bit_cast<float>(bits.lo & 0xbfffffffu);  // |x| < 2: never infinite, never a NaN
  }
};

template <>
struct PatternEncoding<DataType::kF64> {
  using Word = double;
  LOCKSTEP_INLINE static Word FromValue(PatternValue value) {
    return static_cast<double>(value.lo) + static_cast<double>(value.hi) * 0x1p24;
  }
  LOCKSTEP_INLINE static Word FromBits(PatternBits bits) {
    const std::uint64_t upper = bits.hi & 0xbfffffffu;
    return std::bit_cast<double>(upper << 32 | bits.lo);
  }
};

template <>
struct PatternEncoding<DataType::kBf16> {
  using Word = std::uint16_t;
  LOCKSTEP_INLINE static Word FromValue(PatternValue value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value.lo));
    return static_cast<Word>(bits >> 16);  // exact: at most 8 significant bits
  }
  LOCKSTEP_INLINE static Word FromBits(PatternBits bits) {
    return static_cast<Word>(bits.lo & 0xbfffu);
  }
};

// Floats of less than 32 bits that have another exponent than a binary32: exact for integers that
// have few enough significant bits and are in range. `kRebase`: 127 less their exponent's bias.
template <typename Bits, int kFraction, int kRebase>
struct SmallFloatEncoding {
  using Word = Bits;
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Word));
  LOCKSTEP_INLINE static Word FromValue(PatternValue value) {
    // The product has the smaller exponent; it is exact, and 0 stays 0.
    constexpr float kScale = std::bit_cast<float>(static_cast<std::uint32_t>(127 - kRebase) << 23);
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value.lo) * kScale);
    constexpr std::uint32_t kSign = 1u << (kBits - 1);
    return static_cast<Word>((bits >> (23 - kFraction) & (kSign - 1)) |
                             (bits >> (32 - kBits) & kSign));
  }
  LOCKSTEP_INLINE static Word FromBits(PatternBits bits) {
    // Without the exponent's highest bit: below 2, never infinite, never a NaN.
    return static_cast<Word>(bits.lo & ~(1u << (kBits - 2)));
  }
};

template <>
struct PatternEncoding<DataType::kF16> : SmallFloatEncoding<std::uint16_t, 10, 112> {};
template <>
struct PatternEncoding<DataType::kF8E4M3> : SmallFloatEncoding<std::uint8_t, 3, 120> {};
template <>
struct PatternEncoding<DataType::kF8E5M2> : SmallFloatEncoding<std::uint8_t, 2, 112> {};

// Integers of up to 32 bits.
template <typename Integer, Integer kPoison>
struct IntegerEncoding {
  using Word = Integer;
  LOCKSTEP_INLINE static Word FromValue(PatternValue value) { return static_cast<Word>(value.lo); }
  LOCKSTEP_INLINE static Word FromBits(PatternBits bits) {
    const auto word = static_cast<Word>(bits.lo);
    return word == kPoison ? Word{1} : word;
  }
};

template <>
struct PatternEncoding<DataType::kI8> : IntegerEncoding<std::int8_t, INT8_MIN> {};
template <>
struct PatternEncoding<DataType::kU8> : IntegerEncoding<std::uint8_t, UINT8_MAX> {};
template <>
struct PatternEncoding<DataType::kI32> : IntegerEncoding<std::int32_t, INT32_MIN> {};

template <>
struct PatternEncoding<DataType::kI64> {
  using Word = std::int64_t;
  LOCKSTEP_INLINE static Word FromValue(PatternValue value) {
    return static_cast<Word>(value.lo) + static_cast<Word>(value.hi) * (Word{1} << 31);
  }
  LOCKSTEP_INLINE static Word FromBits(PatternBits bits) {
    // Never the smallest value: the lowest bit is set.
    return static_cast<Word>(std::uint64_t{bits.hi} << 32 | bits.lo | 1u);
  }
};

}  // namespace lockstep::collective
