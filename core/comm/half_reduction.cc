#include "core/comm/half_reduction.h"

#include <cstdint>

#include "core/collective/half.h"

namespace lockstep {
namespace {

struct F16 {
  static float ToFloat(std::uint16_t bits) { return FloatFromF16(bits); }
  static std::uint16_t FromFloat(float value) { return F16FromFloat(value); }
};
struct Bf16 {
  static float ToFloat(std::uint16_t bits) { return FloatFromBf16(bits); }
  static std::uint16_t FromFloat(float value) { return Bf16FromFloat(value); }
};

template <Reduction kReduction>
float Combine(float a, float b) {
  if constexpr (kReduction == Reduction::kSum) return a + b;
  if constexpr (kReduction == Reduction::kProd) return a * b;
  if constexpr (kReduction == Reduction::kMin) return b < a ? b : a;
  if constexpr (kReduction == Reduction::kMax) return a < b ? b : a;
}

template <typename Half, Reduction kReduction>
void Reduce(void* out, const void* a, const void* b, std::size_t count) {
  auto* to = static_cast<std::uint16_t*>(out);
  const auto* left = static_cast<const std::uint16_t*>(a);
  const auto* right = static_cast<const std::uint16_t*>(b);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = Half::FromFloat(Combine<kReduction>(Half::ToFloat(left[i]), Half::ToFloat(right[i])));
  }
}

template <typename Half>
HalfReduction ReductionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return &Reduce<Half, Reduction::kSum>;
    case Reduction::kProd:
      return &Reduce<Half, Reduction::kProd>;
    case Reduction::kMin:
      return &Reduce<Half, Reduction::kMin>;
    case Reduction::kMax:
      return &Reduce<Half, Reduction::kMax>;
  }
  return nullptr;
}

}  // namespace

HalfReduction HalfReductionFor(DataType type, Reduction reduction) {
  if (type == DataType::kF16) return ReductionOf<F16>(reduction);
  if (type == DataType::kBf16) return ReductionOf<Bf16>(reduction);
  return nullptr;
}

}  // namespace lockstep
