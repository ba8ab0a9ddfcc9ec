// What becomes of one call of a collective.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/sim/call.h"

namespace lockstep::comm::sim {

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
