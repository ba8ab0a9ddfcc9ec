// Inputs whose exact result is known for every element, and the check of that result.
//
// The value that rank r contributes to element e depends on (seed, r, e, stamp), where the stamp is
// the iteration in which that element was last written. All values and every partial result of a
// reduction, in any order of ranks, are exact in the type, so a right library gives these very
// bits: nonnegative integers whose sum over all ranks stays within the significand (f16 2^11, bf16
// 2^8, f8e4m3 2^4, f8e5m2 2^3, f32 2^24, ...) and within i8/u8; products of +-1 and few 2s;
// integers for min and max, of which one rank's decides. Copies (broadcast, all_gather, ...) carry
// random bits, finite in floats.
//
// One flipped bit is always found. A result of another iteration or element, or without or with
// twice the contribution of a rank, differs in nearly every element of a sum; in a product where
// the rank's factor is not 1 (half of them; u8: few); in min and max where the rank decides (one in
// W). A sum with more ranks than its significand has room for (f8e5m2 3, f8e4m3 7, i8 and
// u8 63, bf16 127, f16 1023) takes that many of them in each element, always others. The floats of
// 8 bits have so few integers (sums of f8e4m3 take 8 values, of f8e5m2 4) that one element of
// another iteration is right by chance as often; whole buffers are not. Formulas:
// core/collective/pattern_values.h. Idea: NVIDIA/nccl-tests verifiable/ (inputs with exactly known
// sums).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/collective/collective.h"

namespace lockstep::collective {

class PatternMemory;
struct PatternPiece;

// A wrong element. `element` is the index in the receive buffer; values printed exactly
// (shortest decimal form that round-trips, then the bits in hexadecimal).
struct WrongElement {
  std::int64_t element = 0;
  std::string expected;
  std::string got;
};

struct CheckReport {
  std::int64_t checked = 0;         // elements compared
  std::int64_t wrong = 0;           // elements that differ in at least one bit
  std::vector<WrongElement> first;  // the first few wrong ones, at most kReported
  static constexpr std::size_t kReported = 4;
};

// One operation's data on a communicator of `world_size` ranks, at most kMaxWorldSize. Pure and
// stateless: all methods are const; ranges are [begin, begin + count) in elements of the named
// buffer.
class Pattern {
 public:
  static constexpr int kMaxWorldSize = 1 << 16;

  // `memory`: where the data lie; nullptr: the host's memory. Outlives the pattern.
  Pattern(std::uint64_t seed, const Operation& operation, int world_size,
          PatternMemory* memory = nullptr);

  // Writes what `rank` sends: elements of its send buffer, which for reduce_scatter has count *
  // world_size of them. For broadcast only the root's values matter (others write theirs too).
  // `data` points at element `begin` and is aligned for the type.
  void FillSend(void* data, std::int64_t begin, std::int64_t count, int rank,
                std::uint64_t stamp) const;
  // Writes values that no right result of any stamp has (a NaN, or an impossible integer), so a
  // library that wrote nothing is caught.
  void Poison(void* data, std::int64_t begin, std::int64_t count) const;
  // Compares elements of `rank`'s receive buffer with the exact result of inputs of that stamp and
  // adds to `report`. At memory bandwidth: no table, no branch per element. Compares nothing where
  // the rank receives nothing: barrier, send, and reduce on other ranks than the root.
  void CheckRecv(const void* data, std::int64_t begin, std::int64_t count, int rank,
                 std::uint64_t stamp, CheckReport& report) const;

  const Operation& operation() const { return operation_; }
  int world_size() const { return world_size_; }

 private:
  // Receive element e is element e + shift of what `sender` (copies) or everyone (reductions)
  // sends.
  struct Source {
    int sender = 0;
    std::int64_t shift = 0;
  };
  void CheckFrom(Source source, const void* data, std::int64_t begin, std::int64_t count,
                 std::uint64_t stamp, CheckReport& report) const;
  PatternPiece PieceOf(std::uint64_t stream, std::int64_t begin, std::int64_t count, int rank,
                       bool result) const;
  void CheckElsewhere(const PatternPiece& piece, const void* data, std::int64_t begin,
                      CheckReport& report) const;
  void CheckGathered(const void* data, std::int64_t begin, std::int64_t count, std::uint64_t stamp,
                     CheckReport& report) const;

  std::uint64_t seed_;
  Operation operation_;
  int world_size_;
  PatternMemory* memory_;
  std::int32_t weight_total_ = 0;  // of all ranks' constant parts of a sum, in each element
};

}  // namespace lockstep::collective
