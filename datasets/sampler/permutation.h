// torch.randperm(n): all of it, or only what one rank wants of it.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "datasets/sampler/huge_array.h"
#include "datasets/sampler/shuffle_steps.h"

namespace lockstep::datasets::sampler {

// The positions rank, rank + world, … of a sequence that repeats: the k-th is
// (rank + k * world) mod n for k = 0 … count-1. All are different: count = 1, or
// (count - 1) * world + rank < n + world and world <= n.
struct Wanted {
  std::int64_t world = 1;
  std::int64_t rank = 0;
  std::int64_t count = 0;
};

// The whole permutation, by walking the shuffle's steps forwards. Memory: n positions.
template <typename Position>
Result<HugeArray<Position>> WholePermutation(const Shuffle& shuffle);

// What stands at the wanted positions in the end, by walking the steps backwards: a token lies on
// each wanted position and goes where its content came from, until it lies where that was first
// written. A step concerns us only if a token lies on its target, which one bit a position tells;
// so of n random accesses to gigabytes n/world remain.
// Memory: n bits, and 3 * count positions.
template <typename Position>
Result<HugeArray<Position>> TracedPermutation(const Shuffle& shuffle, const Wanted& wanted);

}  // namespace lockstep::datasets::sampler
