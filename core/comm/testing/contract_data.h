// Inputs and expected results of the communicator contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/collective/collective.h"

namespace lockstep::comm {

// Where a rank's buffers lie.
enum class Placement { kOutOfPlace, kInPlace };

// What one rank hands to one operation, with room to see what was written where it must not be.
class ContractCall {
 public:
  ContractCall(const collective::Operation& operation, int world_size, int rank,
               Placement placement, std::uint64_t seed);

  const collective::Operation& operation() const { return operation_; }
  collective::Buffers buffers();
  // Empty when the receive buffer holds exactly the reference result and nothing else was written;
  // else what is wrong.
  std::string Wrong() const;

 private:
  std::vector<std::byte> SendOf(int rank) const;
  bool reads_result() const;

  collective::Operation operation_;
  int world_size_;
  int rank_;
  Placement placement_;
  std::uint64_t seed_;
  std::vector<std::byte> send_;
  std::vector<std::byte> recv_;
};

// All operations of the contract with `count` elements: each collective with each type and, where
// it reduces, each reduction, and where it has a root, the first and the last rank.
std::vector<collective::Operation> ContractOperations(int world_size, std::int64_t count,
                                                      collective::Blocking blocking);

}  // namespace lockstep::comm
