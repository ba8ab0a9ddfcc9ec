// Element by element through float, rounded once, which is what NCCL and PyTorch do. All types and
// reductions are instantiated here and chosen by a function pointer.
#include "core/comm/narrow_reduction.h"

#include <cstdint>

#include "core/collective/float8.h"
#include "core/collective/half.h"

namespace lockstep::comm {
namespace {

template <collective::Reduction kReduction>
float Combine(float a, float b) {
  if constexpr (kReduction == collective::Reduction::kSum) return a + b;
  if constexpr (kReduction == collective::Reduction::kProd) return a * b;
  if constexpr (kReduction == collective::Reduction::kMin) return b < a ? b : a;
  if constexpr (kReduction == collective::Reduction::kMax) return a < b ? b : a;
}

template <typename Word, float (*kToFloat)(Word), Word (*kFromFloat)(float)>
struct Narrow {
  template <collective::Reduction kReduction>
  static void Reduce(void* out, const void* a, const void* b, std::size_t count) {
    auto* to = static_cast<Word*>(out);
    const auto* left = static_cast<const Word*>(a);
    const auto* right = static_cast<const Word*>(b);
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = kFromFloat(Combine<kReduction>(kToFloat(left[i]), kToFloat(right[i])));
    }
  }
};

using F16 = Narrow<std::uint16_t, collective::FloatFromF16, collective::F16FromFloat>;
using Bf16 = Narrow<std::uint16_t, collective::FloatFromBf16, collective::Bf16FromFloat>;
using F8E4M3 = Narrow<std::uint8_t, collective::FloatFromF8E4M3, collective::F8E4M3FromFloat>;
using F8E5M2 = Narrow<std::uint8_t, collective::FloatFromF8E5M2, collective::F8E5M2FromFloat>;

template <typename Type>
NarrowReduction ReductionOf(collective::Reduction reduction) {
  switch (reduction) {
    case collective::Reduction::kSum:
      return &Type::template Reduce<collective::Reduction::kSum>;
    case collective::Reduction::kProd:
      return &Type::template Reduce<collective::Reduction::kProd>;
    case collective::Reduction::kMin:
      return &Type::template Reduce<collective::Reduction::kMin>;
    case collective::Reduction::kMax:
      return &Type::template Reduce<collective::Reduction::kMax>;
  }
  return nullptr;
}

}  // namespace

NarrowReduction NarrowReductionFor(collective::DataType type, collective::Reduction reduction) {
  if (type == collective::DataType::kF16) return ReductionOf<F16>(reduction);
  if (type == collective::DataType::kBf16) return ReductionOf<Bf16>(reduction);
  if (type == collective::DataType::kF8E4M3) return ReductionOf<F8E4M3>(reduction);
  if (type == collective::DataType::kF8E5M2) return ReductionOf<F8E5M2>(reduction);
  return nullptr;
}

}  // namespace lockstep::comm
