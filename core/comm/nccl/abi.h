// NCCL's binary interface, as far as Lockstep calls it: our own declarations, so that the backend
// is built without NCCL's header and one binary serves every version from 2.14 on. NCCL keeps this
// interface stable: enumerators never change their numbers, structures only grow at the end and
// carry their size. abi_test compares all of it with nccl.h where there is one.
// Source: NVIDIA/nccl src/nccl.h.in, src/init.cc parseCommConfig.
#pragma once

#include <atomic>
#include <climits>
#include <cstddef>

namespace lockstep::comm::nccl {

// ncclResult_t. NCCL adds enumerators before its ncclNumResults, so nothing compares with that.
using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kUnhandledCudaError = 1;
inline constexpr Code kSystemError = 2;
inline constexpr Code kInternalError = 3;
inline constexpr Code kInvalidArgument = 4;
inline constexpr Code kInvalidUsage = 5;
inline constexpr Code kRemoteError = 6;
inline constexpr Code kInProgress = 7;
inline constexpr Code kTimeout = 8;  // from 2.30.3

// ncclDataType_t and ncclRedOp_t.
enum TypeCode : int {
  kI8 = 0,
  kU8 = 1,
  kI32 = 2,
  kI64 = 4,
  kF16 = 6,
  kF32 = 7,
  kF64 = 8,
  kBf16 = 9,
  kF8E4M3 = 10,  // both from 2.24
  kF8E5M2 = 11
};
enum ReductionCode : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };

inline constexpr int kNoColor = -1;     // NCCL_SPLIT_NOCOLOR
inline constexpr int kShrinkAbort = 1;  // NCCL_SHRINK_ABORT

using Comm = void*;    // ncclComm_t
using Stream = void*;  // cudaStream_t

struct UniqueId {
  char internal[128];
};

inline constexpr unsigned kConfigMagic = 0xcafebeef;
inline constexpr int kUndefined = INT_MIN;

// ncclConfig_t of 2.28. `size` and `version` say how much of it a library is to read.
struct Config {
  std::size_t size = 0;
  unsigned magic = kConfigMagic;
  unsigned version = 0;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;  // from here 2.17
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;     // 2.18
  int traffic_class = kUndefined;   // 2.26
  const char* comm_name = nullptr;  // from here 2.27
  int collnet_enable = kUndefined;
  int cta_policy = kUndefined;
  int shrink_share = kUndefined;
  int nvls_ctas = kUndefined;
  int channels_per_net_peer = kUndefined;  // from here 2.28
  int nvlink_centric_sched = kUndefined;
};

// NCCL_VERSION_CODE since 2.9.
constexpr int VersionCode(int major, int minor, int patch) {
  return major * 10000 + minor * 100 + patch;
}

// The calls. Absent ones are null.
struct Api {
  Code (*GetVersion)(int* version) = nullptr;
  Code (*GetUniqueId)(UniqueId* id) = nullptr;
  const char* (*GetErrorString)(Code code) = nullptr;
  const char* (*GetLastError)(Comm comm) = nullptr;
  Code (*CommInitRankConfig)(Comm* comm, int ranks, UniqueId id, int rank,
                             Config* config) = nullptr;
  Code (*CommFinalize)(Comm comm) = nullptr;
  Code (*CommDestroy)(Comm comm) = nullptr;
  Code (*CommAbort)(Comm comm) = nullptr;
  Code (*CommGetAsyncError)(Comm comm, Code* error) = nullptr;
  Code (*CommCount)(Comm comm, int* count) = nullptr;
  Code (*CommUserRank)(Comm comm, int* rank) = nullptr;
  Code (*AllReduce)(const void* send, void* recv, std::size_t count, int type, int reduction,
                    Comm comm, Stream stream) = nullptr;
  Code (*Broadcast)(const void* send, void* recv, std::size_t count, int type, int root, Comm comm,
                    Stream stream) = nullptr;
  Code (*Reduce)(const void* send, void* recv, std::size_t count, int type, int reduction, int root,
                 Comm comm, Stream stream) = nullptr;
  Code (*AllGather)(const void* send, void* recv, std::size_t send_count, int type, Comm comm,
                    Stream stream) = nullptr;
  Code (*ReduceScatter)(const void* send, void* recv, std::size_t recv_count, int type,
                        int reduction, Comm comm, Stream stream) = nullptr;
  Code (*Send)(const void* send, std::size_t count, int type, int peer, Comm comm,
               Stream stream) = nullptr;
  Code (*Recv)(void* recv, std::size_t count, int type, int peer, Comm comm,
               Stream stream) = nullptr;
  Code (*GroupStart)() = nullptr;
  Code (*GroupEnd)() = nullptr;
  Code (*CommSplit)(Comm comm, int color, int key, Comm* child, Config* config) = nullptr;
  Code (*CommRegister)(Comm comm, void* data, std::size_t bytes, void** handle) = nullptr;
  Code (*CommShrink)(Comm comm, int* excluded, int excluded_count, Comm* child, Config* config,
                     int flags) = nullptr;
  Code (*CommRevoke)(Comm comm, int flags) = nullptr;
};

// A library of tests that works on host memory says so by exporting this name (an int, 1). Where
// NCCL is handed a cudaStream_t it is handed a StandInStream, and runs what is enqueued there
// beside the caller, in order.
inline constexpr char kStandInSymbol[] = "lockstep_nccl_stand_in";
struct StandInStream {
  std::atomic<int> unfinished{0};
};

}  // namespace lockstep::comm::nccl
