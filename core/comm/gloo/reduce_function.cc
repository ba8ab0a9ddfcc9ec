#include "core/comm/gloo/reduce_function.h"

#include <gloo/math.h>

#include <cstdint>

#include "core/base/check.h"
#include "core/comm/narrow_reduction.h"

namespace lockstep::comm::gloo {
namespace {

// By Reduction.
template <typename T>
constexpr ReduceFunction kOwn[] = {&::gloo::sum<T>, &::gloo::product<T>, &::gloo::min<T>,
                                   &::gloo::max<T>};

}  // namespace

ReduceFunction ReduceFunctionFor(DataType type, Reduction reduction) {
  const auto index = static_cast<std::size_t>(reduction);
  switch (type) {
    // ::gloo::float16's assignment compares bits with the value of an integer and leaves the old
    // bits when they "are equal": 2.0 is not assigned to a place that holds the bits 0x0002. So
    // results would depend on what the output buffer held before.
    case DataType::kF16:
    case DataType::kBf16:
    case DataType::kF8E4M3:
    case DataType::kF8E5M2:
      return NarrowReductionFor(type, reduction);
    case DataType::kF32:
      return kOwn<float>[index];
    case DataType::kF64:
      return kOwn<double>[index];
    case DataType::kI8:
      return kOwn<std::int8_t>[index];
    case DataType::kI32:
      return kOwn<std::int32_t>[index];
    case DataType::kI64:
      return kOwn<std::int64_t>[index];
    case DataType::kU8:
      return kOwn<std::uint8_t>[index];
  }
  LOCKSTEP_CHECK(false, "a DataType that is not in the table");
  return nullptr;
}

}  // namespace lockstep::comm::gloo
