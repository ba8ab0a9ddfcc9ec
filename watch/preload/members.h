// One number for the members of a communicator, the same in all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace lockstep::watch::preload {

inline std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t mixed =
      (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdULL;
  mixed ^= mixed >> 33;
  return mixed < 1000 ? mixed + 1000 : mixed;
}

// Of the first `most` of `size`. `look_up(here, count, there)` says where members stand in the
// world: some at a time, because they lie on the stack of a program's call.
template <typename LookUp>
std::uint64_t HashMembers(int size, int most, LookUp look_up) {
  constexpr int kAtATime = 64;
  std::uint64_t members = static_cast<std::uint64_t>(size);
  for (int first = 0, end = std::min(size, most); first < end; first += kAtATime) {
    const int count = std::min(end - first, kAtATime);
    int here[kAtATime];
    int there[kAtATime];
    std::iota(here, here + count, first);
    look_up(here, count, there);
    for (int each = 0; each < count; ++each) {
      members = Mix(members, static_cast<std::uint64_t>(there[each]));
    }
  }
  return members;
}

}  // namespace lockstep::watch::preload
