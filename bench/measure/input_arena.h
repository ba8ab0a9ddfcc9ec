// The send buffer of a rank and what it holds. Cases share it: as long as they are of the same kind
// (collective, type, reduction), what one left is input for the next, so that a visit begins with
// the caches as a plain loop would have them, and not with a buffer that was just rewritten.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/collective/pattern.h"

namespace lockstep::bench::measure {

// A piece of the arena in bytes; `begin` is a multiple of kGranuleBytes.
struct ArenaRange {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

class InputArena {
 public:
  // The unit that is rewritten as a whole, and so has one stamp.
  static constexpr std::int64_t kGranuleBytes = 512;

  // `data` holds `bytes`, a multiple of kGranuleBytes. Elements have the value that Pattern gives
  // their index in the arena for `rank`; a rank that does not send (`writes` false) keeps the books
  // only, because all ranks must know what the senders hold.
  InputArena(void* data, std::int64_t bytes, int rank);

  // From now on elements are of this pattern; anything of another kind is forgotten.
  void Select(const collective::Pattern& pattern, bool writes);
  // Writes what has not been written since Select, with this stamp.
  void Cover(ArenaRange range, std::uint32_t stamp);
  // Writes window number `window` of `windows` nearly equal ones of the range (whole granules).
  void Rewrite(ArenaRange range, std::int64_t window, std::int64_t windows, std::uint32_t stamp);

  // Calls visit(begin, bytes, stamp) for the pieces of a range that have one stamp, in order.
  template <typename Visit>
  void ForEachStamp(ArenaRange range, const Visit& visit) const {
    const std::int64_t end = range.begin + range.bytes;
    for (std::int64_t begin = range.begin; begin < end;) {
      std::int64_t granule = begin / kGranuleBytes;
      const std::uint32_t stamp = stamps_[static_cast<std::size_t>(granule)];
      do {
        ++granule;
      } while (granule * kGranuleBytes < end &&
               stamps_[static_cast<std::size_t>(granule)] == stamp);
      const std::int64_t stop = granule * kGranuleBytes < end ? granule * kGranuleBytes : end;
      visit(begin, stop - begin, stamp);
      begin = stop;
    }
  }

  void* At(std::int64_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  void Write(std::int64_t first_granule, std::int64_t granules, std::uint32_t stamp);

  void* data_;
  int rank_;
  bool writes_ = true;
  std::optional<collective::Pattern> pattern_;
  std::vector<std::uint32_t> stamps_;  // one a granule; 0: never written
};

}  // namespace lockstep::bench::measure
