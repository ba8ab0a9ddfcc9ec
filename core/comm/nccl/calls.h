// An operation as NCCL's call of it.
#pragma once

#include "core/collective/collective.h"
#include "core/comm/nccl/abi.h"

namespace lockstep::comm::nccl {

TypeCode TypeCodeOf(collective::DataType type);
ReductionCode ReductionCodeOf(collective::Reduction reduction);

// "ncclAllReduce". A barrier is an all-reduce of one f32, as PyTorch's is.
const char* CallName(const collective::Operation& operation);
Code MakeCall(const Api& api, const collective::Operation& operation,
              const collective::Buffers& buffers, Comm comm, Stream stream);

}  // namespace lockstep::comm::nccl
