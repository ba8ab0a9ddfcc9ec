// The element-wise reductions that gloo's collectives are given.
#pragma once

#include <cstddef>

#include "core/collective/collective.h"

namespace lockstep::comm::gloo {

using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// gloo's own functions, which are what PyTorch uses; ours for bf16 and the floats of 8 bits, which
// gloo does not have, and for f16, which it gets wrong.
ReduceFunction ReduceFunctionFor(DataType type, Reduction reduction);

}  // namespace lockstep::comm::gloo
