#include "core/comm/gloo/reduce_function.h"

#include <gloo/math.h>

#include <cstdint>

#include "core/base/check.h"
#include "core/comm/narrow_reduction.h"

namespace lockstep::comm::gloo {
namespace {

template <typename T>
ReduceFunction Own(collective::Reduction reduction) {
  switch (reduction) {
    case collective::Reduction::kSum:
      return &::gloo::sum<T>;
    case collective::Reduction::kProd:
      return &::gloo::product<T>;
    case collective::Reduction::kMin:
      return &::gloo::min<T>;
    case collective::Reduction::kMax:
      return &::gloo::max<T>;
  }
  LOCKSTEP_CHECK(false, "a Reduction that is not in the table");
  return nullptr;
}

}  // namespace

ReduceFunction ReduceFunctionFor(collective::DataType type, collective::Reduction reduction) {
  switch (type) {
    // ::gloo::float16's assignment compares bits with the value of an integer and leaves the old
    // bits when they "are equal": 2.0 is not assigned to a place that holds the bits 0x0002. So
    // results would depend on what the output buffer held before.
    case collective::DataType::kF16:
    case collective::DataType::kBf16:
    case collective::DataType::kF8E4M3:
    case collective::DataType::kF8E5M2:
      return NarrowReductionFor(type, reduction);
    case collective::DataType::kF32:
      return Own<float>(reduction);
    case collective::DataType::kF64:
      return Own<double>(reduction);
    case collective::DataType::kI8:
      return Own<std::int8_t>(reduction);
    case collective::DataType::kI32:
      return Own<std::int32_t>(reduction);
    case collective::DataType::kI64:
      return Own<std::int64_t>(reduction);
    case collective::DataType::kU8:
      return Own<std::uint8_t>(reduction);
  }
  LOCKSTEP_CHECK(false, "a DataType that is not in the table");
  return nullptr;
}

}  // namespace lockstep::comm::gloo
