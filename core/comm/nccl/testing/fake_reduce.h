// Element-wise reduction by NCCL's codes of types and reductions.
#pragma once

#include <cstddef>

namespace lockstep::comm::nccl {

std::size_t BytesOfType(int type);  // 0: unknown
// into[i] = into[i] op from[i].
void ReduceInto(void* into, const void* from, std::size_t count, int type, int reduction);

}  // namespace lockstep::comm::nccl
