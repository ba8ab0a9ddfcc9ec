// What the network is told to do wrong: LOCKSTEP_NET_FAULT of a rank's process.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::stress::nccl_net {

// "KIND[:after=N][:ms=N]": of the sends of this process from the N-th on (from 1; default 1).
//   delay   each leaves `ms` (default 10) later than it was asked for
//   drop    none leaves any more, and none is ever done
//   fail    each ends with ncclSystemError
//   stall   connecting never comes to an end (`after` counts connections)
struct NetFault {
  enum class Kind { kNone, kDelay, kDrop, kFail, kStall };
  Kind kind = Kind::kNone;
  std::uint64_t after = 1;
  std::int64_t ms = 10;
};

// False: not understood; `fault` is unchanged.
bool ParseNetFault(const std::string& text, NetFault& fault);

}  // namespace lockstep::stress::nccl_net
