// One rank's call of one collective, and what becomes of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/sim/rules.h"
#include "core/comm/sim/scheduler.h"

namespace lockstep::comm::sim {

// What a call receives: bytes [offset, offset + bytes) of `data`, which calls may share.
struct SimDelivery {
  std::shared_ptr<const std::vector<std::byte>> data;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct SimCall {
  Operation asked;  // by the rank
  Operation run;    // by the library (rules.h, AsRun)
  Buffers buffers;
  int rank = 0;  // in the group
  int size = 0;  // of the group
  std::uint64_t sequence = 0;
  SimPlace place;

  // Once settled:
  bool settled = false;
  std::int64_t done_at_ns = 0;  // its rank goes on, and then writes the delivery
  Status status;
  SimDelivery delivery;
  WaitList changed;

  // In a tree: of a broadcast, this rank has the root's data; of a reduce, that of its subtree.
  bool holds = false;
  // Broadcast: the root's data as it came here; reduce: what this rank sent. Its sender may go on,
  // so this is a copy.
  std::shared_ptr<const std::vector<std::byte>> held;

  std::size_t SendSize() const {
    return static_cast<std::size_t>(collective::SendBytes(run, size));
  }
  std::size_t RecvSize() const {
    return static_cast<std::size_t>(collective::RecvBytes(run, size));
  }
  std::size_t BlockSize() const {
    return static_cast<std::size_t>(run.count * collective::SizeOf(run.type));
  }
};

struct SimFate {
  enum class Kind { kWaits, kDone, kError, kCrash };
  Kind kind = Kind::kWaits;  // for ever
  SimDelivery delivery = {};
  std::string message = {};  // kError, kCrash
};

using SimCalls = std::vector<const SimCall*>;  // by rank

// A delivery of its own.
inline SimDelivery Whole(std::vector<std::byte> data) {
  const std::size_t bytes = data.size();
  return {std::make_shared<const std::vector<std::byte>>(std::move(data)), 0, bytes};
}

// What the receive buffer of a call holds before, `bytes` of it (zeros where there is none).
inline std::vector<std::byte> HeldBefore(const SimCall& call, std::size_t bytes) {
  std::vector<std::byte> held(bytes);
  const auto* before = static_cast<const std::byte*>(call.buffers.recv);
  const std::size_t there = before == nullptr ? 0 : std::min(bytes, call.RecvSize());
  if (there > 0) std::copy_n(before, there, held.begin());
  return held;
}

// MPI's and gloo's words for a message that is longer than what waits for it.
SimFate Truncated(SimDelivery delivery);
SimFate Overrun(std::size_t sent, std::size_t room);

// total = total op input, as the call reduces; `bytes` of each.
void CombineInto(const SimCall& call, std::byte* total, const std::byte* input, std::size_t bytes);

}  // namespace lockstep::comm::sim
