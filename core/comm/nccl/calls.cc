// Lockstep's types, reductions and operations in NCCL's codes and calls. The arrays stand in the
// order of our enumerations. Only calls go through the given Api, so a test can put any library
// behind them.
#include <cstddef>
#include <iterator>

#include "core/base/check.h"
#include "core/comm/nccl/library.h"

namespace lockstep::comm::nccl {

TypeCode TypeCodeOf(collective::DataType type) {
  static constexpr TypeCode kCodes[] = {kF16, kBf16, kF32, kF64,    kI8,
                                        kI32, kI64,  kU8,  kF8E4M3, kF8E5M2};
  static_assert(std::size(kCodes) == collective::kDataTypeCount);
  return kCodes[static_cast<std::size_t>(type)];
}

ReductionCode ReductionCodeOf(collective::Reduction reduction) {
  static constexpr ReductionCode kCodes[] = {kSum, kProd, kMin, kMax};
  return kCodes[static_cast<std::size_t>(reduction)];
}

const char* CallName(const collective::Operation& operation) {
  static constexpr const char* kNames[] = {"ncclAllReduce", "ncclBroadcast",     "ncclAllReduce",
                                           "ncclAllGather", "ncclReduceScatter", "ncclReduce",
                                           "ncclSend",      "ncclRecv"};
  return kNames[static_cast<std::size_t>(operation.collective)];
}

Code MakeCall(const Api& api, const collective::Operation& operation,
              const collective::Buffers& buffers, Comm comm, Stream stream) {
  const auto count = static_cast<std::size_t>(operation.count);
  const int type = TypeCodeOf(operation.type);
  const int reduction = ReductionCodeOf(operation.reduction);
  const void* send = buffers.send;
  void* recv = buffers.recv;
  switch (operation.collective) {
    case collective::Collective::kAllReduce:
      return api.AllReduce(send, recv, count, type, reduction, comm, stream);
    case collective::Collective::kBarrier:
      return api.AllReduce(send, recv, 1, kF32, kSum, comm, stream);
    case collective::Collective::kBroadcast:
      // NCCL looks at both; a root without a receive buffer, and others without one to send, use
      // the one they have.
      if (send == nullptr) send = recv;
      if (recv == nullptr) recv = const_cast<void*>(send);
      return api.Broadcast(send, recv, count, type, operation.root, comm, stream);
    case collective::Collective::kReduce:
      return api.Reduce(send, recv, count, type, reduction, operation.root, comm, stream);
    case collective::Collective::kAllGather:
      return api.AllGather(send, recv, count, type, comm, stream);
    case collective::Collective::kReduceScatter:
      return api.ReduceScatter(send, recv, count, type, reduction, comm, stream);
    case collective::Collective::kSend:
      return api.Send(send, count, type, operation.root, comm, stream);
    case collective::Collective::kRecv:
      return api.Recv(recv, count, type, operation.root, comm, stream);
  }
  LOCKSTEP_CHECK(false, "a Collective that is not in the table");
  return kInvalidUsage;
}

}  // namespace lockstep::comm::nccl
