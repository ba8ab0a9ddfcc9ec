// Element-wise reduction of floats of less than 32 bits, for libraries that don't know these types.
#pragma once

#include <array>
#include <cstddef>

#include "core/collective/collective.h"

namespace lockstep::comm {

using collective::DataType;
using collective::Reduction;

inline constexpr std::array<DataType, 4> kNarrowTypes = {DataType::kF16, DataType::kBf16,
                                                         DataType::kF8E4M3, DataType::kF8E5M2};

// out[i] = a[i] op b[i] for `count` elements, each computed in float and rounded to the type once.
// `out` may be `a` or `b`.
using NarrowReduction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// nullptr for a type that is not one of kNarrowTypes.
NarrowReduction NarrowReductionFor(DataType type, Reduction reduction);

}  // namespace lockstep::comm
