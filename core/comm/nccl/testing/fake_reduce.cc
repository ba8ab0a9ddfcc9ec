// Reduces elements by NCCL's numeric codes, as the stand-in library receives them. Narrow floats go
// through core/comm/narrow_reduction.h.
#include "core/comm/nccl/testing/fake_reduce.h"

#include <algorithm>
#include <cstdint>

#include "core/comm/narrow_reduction.h"
#include "core/comm/nccl/abi.h"

namespace lockstep::comm::nccl {
namespace {

template <typename T>
void Reduce(void* into, const void* from, std::size_t count, int reduction) {
  auto* const a = static_cast<T*>(into);
  const auto* const b = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    if (reduction == kSum) a[i] = static_cast<T>(a[i] + b[i]);
    if (reduction == kProd) a[i] = static_cast<T>(a[i] * b[i]);
    if (reduction == kMax) a[i] = std::max(a[i], b[i]);
    if (reduction == kMin) a[i] = std::min(a[i], b[i]);
  }
}

void ReduceNarrow(void* into, const void* from, std::size_t count, collective::DataType type,
                  int reduction) {
  static constexpr collective::Reduction kReductions[] = {
      collective::Reduction::kSum, collective::Reduction::kProd, collective::Reduction::kMax,
      collective::Reduction::kMin};
  NarrowReductionFor(type, kReductions[reduction])(into, into, from, count);
}

}  // namespace

std::size_t BytesOfType(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type <= kF8E5M2 ? kBytes[type] : 0;
}

void ReduceInto(void* into, const void* from, std::size_t count, int type, int reduction) {
  switch (type) {
    case kI8:
      return Reduce<std::int8_t>(into, from, count, reduction);
    case kU8:
      return Reduce<std::uint8_t>(into, from, count, reduction);
    case kI32:
      return Reduce<std::int32_t>(into, from, count, reduction);
    case kI64:
      return Reduce<std::int64_t>(into, from, count, reduction);
    case kF32:
      return Reduce<float>(into, from, count, reduction);
    case kF64:
      return Reduce<double>(into, from, count, reduction);
    case kF16:
      return ReduceNarrow(into, from, count, collective::DataType::kF16, reduction);
    case kBf16:
      return ReduceNarrow(into, from, count, collective::DataType::kBf16, reduction);
    case kF8E4M3:
      return ReduceNarrow(into, from, count, collective::DataType::kF8E4M3, reduction);
    case kF8E5M2:
      return ReduceNarrow(into, from, count, collective::DataType::kF8E5M2, reduction);
    default:
      return;
  }
}

}  // namespace lockstep::comm::nccl
