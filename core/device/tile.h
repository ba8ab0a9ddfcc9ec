// The values that synthetic gradients and parameters are made of: a tile of small integers that a
// tensor repeats, with the same bits on the host and on a device.
#pragma once

#include <cstdint>

#include "core/base/random.h"

namespace lockstep::device {

// A prime number of elements, so that a shift by any likely offset shows.
inline constexpr std::int64_t kTile = 1009;

// Which tile.
struct TileSource {
  int rank = 0;
  std::int64_t input = 0;
  const std::int64_t* input_at = nullptr;  // of the device's memory; not null: read there when run
  int param = 0;
};

constexpr std::uint64_t TileKey(int rank, std::int64_t input, int param) {
  return Mix64(Mix64(Mix64(static_cast<std::uint64_t>(rank)) + static_cast<std::uint64_t>(input)) +
               static_cast<std::uint64_t>(param));
}

// 1 to 16, exact in every floating-point type.
constexpr float TileValue(std::uint64_t key, std::int64_t index) {
  return static_cast<float>(1 + (Mix64(key + static_cast<std::uint64_t>(index)) & 15));
}

}  // namespace lockstep::device
