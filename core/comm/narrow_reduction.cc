// Element by element through float, rounded once, which is what NCCL and PyTorch do. All types and
// reductions are instantiated here and chosen by a function pointer.
#include "core/comm/narrow_reduction.h"

#include <cstdint>

#include "core/collective/float8.h"
#include "core/collective/half.h"

namespace lockstep::comm {
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

using F16 = Narrow<std::uint16_t, collective::FloatFromF16, collective::F16FromFloat>;
using Bf16 = Narrow<std::uint16_t, collective::FloatFromBf16, collective::Bf16FromFloat>;
using F8E4M3 = Narrow<std::uint8_t, collective::FloatFromF8E4M3, collective::F8E4M3FromFloat>;
using F8E5M2 = Narrow<std::uint8_t, collective::FloatFromF8E5M2, collective::F8E5M2FromFloat>;

// By Reduction.
template <typename Type>
constexpr NarrowReduction kReductionsOf[] = {
    &Type::template Reduce<Reduction::kSum>, &Type::template Reduce<Reduction::kProd>,
    &Type::template Reduce<Reduction::kMin>, &Type::template Reduce<Reduction::kMax>};

}  // namespace

NarrowReduction NarrowReductionFor(DataType type, Reduction reduction) {
  const auto index = static_cast<std::size_t>(reduction);
  if (type == DataType::kF16) return kReductionsOf<F16>[index];
  if (type == DataType::kBf16) return kReductionsOf<Bf16>[index];
  if (type == DataType::kF8E4M3) return kReductionsOf<F8E4M3>[index];
  if (type == DataType::kF8E5M2) return kReductionsOf<F8E5M2>[index];
  return nullptr;
}

}  // namespace lockstep::comm
