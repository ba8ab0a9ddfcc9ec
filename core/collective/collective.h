// What a collective is: one table row each. Backends, checks, reports and journals all refer to
// this description.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/collective/data_type.h"

namespace lockstep::collective {

enum class Collective : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kBarrier,
  kAllGather,
  kReduceScatter,
  kReduce,
  kSend,
  kRecv,
};

enum class Reduction : std::uint8_t { kSum, kProd, kMin, kMax };

// One of the two ends of a message; all other operations are of all ranks.
constexpr bool IsMessage(Collective collective) {
  return collective == Collective::kSend || collective == Collective::kRecv;
}

// How the caller waits: kBlocking returns from Enqueue when the library's blocking call returns;
// kNonblocking posts the library's non-blocking call, and Await completes it.
enum class Blocking : std::uint8_t { kBlocking, kNonblocking };

// One collective as one rank calls it. `count` is in elements and means what it means in NCCL:
// all_reduce, broadcast, reduce, send, recv: elements of the buffer; all_gather: elements sent by
// each rank; reduce_scatter: elements received by each rank; barrier: 0.
struct Operation {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kF32;
  Reduction reduction = Reduction::kSum;
  Blocking blocking = Blocking::kBlocking;
  std::int64_t count = 0;
  int root = 0;  // broadcast and reduce: root rank; send and recv: the peer

  bool operator==(const Operation&) const = default;
};

// Its count is 0, so it has no buffers.
inline constexpr Operation kBarrierOperation{.collective = Collective::kBarrier,
                                             .type = DataType::kU8};

// Where an operation reads and writes. In place: send == recv (all_gather and reduce_scatter: as
// NCCL defines it, the rank's own block of the larger buffer). Unused buffers are nullptr.
struct Buffers {
  const void* send = nullptr;
  void* recv = nullptr;
};

// One row a collective.
struct CollectiveInfo {
  Collective collective;
  std::string_view name;  // "all_reduce"
  bool reduces;           // has a Reduction
  bool rooted;            // has a root
};
const CollectiveInfo& InfoOf(Collective collective);
std::string_view NameOf(Collective collective);
std::string_view NameOf(Reduction reduction);

// Errors name `option`, the text and the valid names. Reductions: sum prod min max.
Result<Collective> ParseCollective(std::string_view option, std::string_view text);
Result<Reduction> ParseReduction(std::string_view option, std::string_view text);

// Bytes that a rank's send and receive buffers must hold.
std::int64_t SendBytes(const Operation& operation, int world_size);
std::int64_t RecvBytes(const Operation& operation, int world_size);

// Bytes that nccl-tests calls the "size" of the operation: max(send, recv).
std::int64_t MessageBytes(const Operation& operation, int world_size);

// busbw = algbw * factor, algbw = MessageBytes / time. Source: NVIDIA/nccl-tests
// doc/PERFORMANCE.md (all_reduce 2(W-1)/W, all_gather and reduce_scatter (W-1)/W, others 1).
double BusBandwidthFactor(Collective collective, int world_size);

// "all_reduce f32 x 1024 sum", "broadcast u8 x 16 root 0", "barrier".
std::string Describe(const Operation& operation);
// "recv f32 x 16 peer 0 of iteration 3": so a check of results names what it found wrong.
std::string DescribeIn(std::int64_t iteration, const Operation& operation);

}  // namespace lockstep::collective
