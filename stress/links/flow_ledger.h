// What a relay was told to do with the bytes of one direction of a connection.
#pragma once

#include <cstdint>

namespace lockstep::stress::links {

// So far: not what became of it.
struct FlowLedger {
  std::uint64_t bytes = 0;
  double byte_s = 0;       // bytes times the seconds that they were to be held back
  std::uint32_t lost = 0;  // chunks that were to be late as if a segment had been lost
};

}  // namespace lockstep::stress::links
