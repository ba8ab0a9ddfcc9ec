// Element-wise reduction of f16 and bf16, for libraries that don't know these types.
#ifndef LOCKSTEP_CORE_COMM_HALF_REDUCTION_H_
#define LOCKSTEP_CORE_COMM_HALF_REDUCTION_H_

#include <cstddef>

#include "core/collective/collective.h"

namespace lockstep {

// out[i] = a[i] op b[i] for `count` elements, each computed in float and rounded to the type once.
// `out` may be `a` or `b`.
using HalfReduction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// nullptr for a type that is not kF16 or kBf16.
HalfReduction HalfReductionFor(DataType type, Reduction reduction);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_COMM_HALF_REDUCTION_H_
