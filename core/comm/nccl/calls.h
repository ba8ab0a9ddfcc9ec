// An operation as NCCL's call of it.
#ifndef LOCKSTEP_CORE_COMM_NCCL_CALLS_H_
#define LOCKSTEP_CORE_COMM_NCCL_CALLS_H_

#include "core/collective/collective.h"
#include "core/comm/nccl/abi.h"

namespace lockstep::nccl {

TypeCode TypeCodeOf(DataType type);
ReductionCode ReductionCodeOf(Reduction reduction);

// "ncclAllReduce". A barrier is an all-reduce of one f32, as PyTorch's is.
const char* CallName(const Operation& operation);
Code MakeCall(const Api& api, const Operation& operation, const Buffers& buffers, Comm comm,
              Stream stream);

}  // namespace lockstep::nccl

#endif  // LOCKSTEP_CORE_COMM_NCCL_CALLS_H_
