#include "bench/measure/input_arena.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::bench::measure {
namespace {

bool SameKind(const collective::Operation& a, const collective::Operation& b) {
  return a.collective == b.collective && a.type == b.type && a.reduction == b.reduction &&
         a.root == b.root;
}

std::int64_t GranulesOf(std::int64_t bytes) {
  return (bytes + InputArena::kGranuleBytes - 1) / InputArena::kGranuleBytes;
}

}  // namespace

InputArena::InputArena(void* data, std::int64_t bytes, int rank)
    : data_(data), rank_(rank), stamps_(static_cast<std::size_t>(GranulesOf(bytes)), 0) {
  LOCKSTEP_CHECK(bytes % kGranuleBytes == 0, "an arena is whole granules");
}

void InputArena::Select(const collective::Pattern& pattern, bool writes) {
  if (pattern_ && SameKind(pattern_->operation(), pattern.operation())) return;
  pattern_ = pattern;
  writes_ = writes;
  std::fill(stamps_.begin(), stamps_.end(), 0);
}

void InputArena::Write(std::int64_t first_granule, std::int64_t granules, std::uint32_t stamp) {
  std::fill_n(stamps_.begin() + first_granule, granules, stamp);
  if (!writes_ || granules == 0) return;
  const std::int64_t size = collective::SizeOf(pattern_->operation().type);
  const std::int64_t begin = first_granule * kGranuleBytes;
  pattern_->FillSend(At(begin), begin / size, granules * kGranuleBytes / size, rank_, stamp);
}

void InputArena::Cover(ArenaRange range, std::uint32_t stamp) {
  const std::int64_t first = range.begin / kGranuleBytes;
  const std::int64_t last = first + GranulesOf(range.bytes);
  for (std::int64_t granule = first; granule < last;) {
    std::int64_t end = granule;
    while (end < last && stamps_[static_cast<std::size_t>(end)] == 0) ++end;
    Write(granule, end - granule, stamp);
    granule = end + 1;
  }
}

void InputArena::Rewrite(ArenaRange range, std::int64_t window, std::int64_t windows,
                         std::uint32_t stamp) {
  const std::int64_t first = range.begin / kGranuleBytes;
  const std::int64_t granules = GranulesOf(range.bytes);
  const std::int64_t begin = granules * window / windows;
  Write(first + begin, granules * (window + 1) / windows - begin, stamp);
}

}  // namespace lockstep::bench::measure
