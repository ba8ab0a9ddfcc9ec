// Pattern data in memory that is not the host's: what a device must be able to do with it.
#pragma once

#include <cstdint>
#include <span>

#include "core/collective/collective.h"
#include "core/collective/pattern_values.h"

namespace lockstep::collective {

enum class PatternRule : std::uint8_t { kCopy, kSum, kProd, kOrder };

// Elements [begin, begin + count) of one random stream.
struct PatternPiece {
  DataType type = DataType::kF32;
  PatternRule rule = PatternRule::kCopy;
  bool result = false;     // what all contributions give, else what `rank` contributes
  std::uint32_t rank = 0;  // of reductions
  std::uint64_t stream = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  PatternTerms terms;
};

struct PatternDifference {
  std::int64_t wrong = 0;  // elements that differ
  std::int64_t first = 0;  // the lowest of them, counted from the piece's begin
  std::uint64_t got = 0;   // its bits
};

// Calls return when the work is done. What cannot be compared counts as wrong.
class PatternMemory {
 public:
  virtual ~PatternMemory() = default;
  virtual void Generate(const PatternPiece& piece, void* data) = 0;
  virtual void Fill(DataType type, std::uint64_t bits, void* data, std::int64_t count) = 0;
  virtual PatternDifference Compare(const PatternPiece& piece, const void* data) = 0;
  // Element i of `count` must be tile[(first + i) mod tile.size()], but for `tolerance` of it; at
  // most kMostTile of them, not 0. Floating-point types only.
  static constexpr std::size_t kMostTile = 1024;
  virtual PatternDifference CompareTile(DataType type, const void* data, std::int64_t count,
                                        std::span<const double> tile, std::int64_t first,
                                        double tolerance) = 0;
};

inline constexpr std::int64_t kPatternBlock = 1024;  // elements that share a key

template <typename Rule>
LOCKSTEP_INLINE PatternValue ValueBy(const PatternPiece& piece, PatternBits bits) {
  if (piece.result) return Rule::Result(piece.terms, bits);
  return Rule::Contribution(piece.terms, SlotOf(piece.rank, piece.terms.world, bits), bits);
}

// Element number `element` of the stream: one at a time, the same bits as Pattern's loops write.
template <DataType kType>
LOCKSTEP_INLINE typename PatternEncoding<kType>::Word PatternElement(const PatternPiece& piece,
                                                                     std::int64_t element) {
  using Encoding = PatternEncoding<kType>;
  const std::uint64_t key = PatternKey(piece.stream, element / kPatternBlock);
  const auto place = static_cast<std::uint32_t>(element % kPatternBlock);
  const PatternBits bits = DrawBits(static_cast<std::uint32_t>(key) + place * kWeylStep,
                                    static_cast<std::uint32_t>(key >> 32));
  if (piece.rule == PatternRule::kCopy) return Encoding::FromBits(bits);
  const PatternValue value = piece.rule == PatternRule::kSum    ? ValueBy<SumRule>(piece, bits)
                             : piece.rule == PatternRule::kProd ? ValueBy<ProdRule>(piece, bits)
                                                                : ValueBy<OrderRule>(piece, bits);
  return Encoding::FromValue(value);
}

// Calls function.operator()<type>() for the type.
template <typename Function>
auto WithPatternType(DataType type, const Function& function) {
  switch (type) {
    case DataType::kF16:
      return function.template operator()<DataType::kF16>();
    case DataType::kBf16:
      return function.template operator()<DataType::kBf16>();
    case DataType::kF32:
      return function.template operator()<DataType::kF32>();
    case DataType::kF64:
      return function.template operator()<DataType::kF64>();
    case DataType::kI8:
      return function.template operator()<DataType::kI8>();
    case DataType::kI32:
      return function.template operator()<DataType::kI32>();
    case DataType::kI64:
      return function.template operator()<DataType::kI64>();
    case DataType::kF8E4M3:
      return function.template operator()<DataType::kF8E4M3>();
    case DataType::kF8E5M2:
      return function.template operator()<DataType::kF8E5M2>();
    case DataType::kU8:
      break;
  }
  return function.template operator()<DataType::kU8>();
}

}  // namespace lockstep::collective
