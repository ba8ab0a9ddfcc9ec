#include "core/comm/narrow_reduction.h"

#include <cstdint>

#include "core/collective/float8.h"
#include "core/collective/half.h"

namespace lockstep {
namespace {

template <Reduction kReduction>
float Combine(float a, float b) {
  if constexpr (kReduction == Reduction::kSum) return a + b;
  if constexpr (kReduction == Reduction::kProd) return a * b;
  if constexpr (kReduction == Reduction::kMin) return b < a ? b : a;
  if constexpr (kReduction == Reduction::kMax) return a < b ? b : a;
}

template <typename Word, float (*kToFloat)(Word), Word (*kFromFloat)(float)>
struct Narrow {
  template <Reduction kReduction>
  static void Reduce(void* out, const void* a, const void* b, std::size_t count) {
    auto* to = static_cast<Word*>(out);
    const auto* left = static_cast<const Word*>(a);
    const auto* right = static_cast<const Word*>(b);
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = kFromFloat(Combine<kReduction>(kToFloat(left[i]), kToFloat(right[i])));
    }
  }
};

using F16 = Narrow<std::uint16_t, FloatFromF16, F16FromFloat>;
using Bf16 = Narrow<std::uint16_t, FloatFromBf16, Bf16FromFloat>;
using F8E4M3 = Narrow<std::uint8_t, FloatFromF8E4M3, F8E4M3FromFloat>;
using F8E5M2 = Narrow<std::uint8_t, FloatFromF8E5M2, F8E5M2FromFloat>;

template <typename Type>
NarrowReduction ReductionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return &Type::template Reduce<Reduction::kSum>;
    case Reduction::kProd:
      return &Type::template Reduce<Reduction::kProd>;
    case Reduction::kMin:
      return &Type::template Reduce<Reduction::kMin>;
    case Reduction::kMax:
      return &Type::template Reduce<Reduction::kMax>;
  }
  return nullptr;
}

}  // namespace

NarrowReduction NarrowReductionFor(DataType type, Reduction reduction) {
  if (type == DataType::kF16) return ReductionOf<F16>(reduction);
  if (type == DataType::kBf16) return ReductionOf<Bf16>(reduction);
  if (type == DataType::kF8E4M3) return ReductionOf<F8E4M3>(reduction);
  if (type == DataType::kF8E5M2) return ReductionOf<F8E5M2>(reduction);
  return nullptr;
}

}  // namespace lockstep
