// Writes the tile of core/device/tile.h into host memory, converted to the tensor's type. A tile
// starts anew every kTile elements.
#include "core/device/host/host_tile.h"

#include <algorithm>
#include <cstddef>

#include "core/base/check.h"
#include "core/collective/half.h"

namespace lockstep::device::host {
namespace {

template <typename Word, typename Value>
void StoreTile(Word* to, std::int64_t count, std::span<const float> tile, Value value) {
  for (std::int64_t begin = 0; begin < count; begin += kTile) {
    const std::int64_t length = std::min(kTile, count - begin);
    for (std::int64_t i = 0; i < length; ++i) {
      to[begin + i] = value(to[begin + i], tile[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace

std::vector<float> MakeTile(const TileSource& source, std::int64_t count) {
  std::vector<float> tile(static_cast<std::size_t>(std::min(kTile, count)));
  const std::int64_t input = source.input_at == nullptr ? source.input : *source.input_at;
  const std::uint64_t key = TileKey(source.rank, input, source.param);
  for (std::size_t i = 0; i < tile.size(); ++i) {
    tile[i] = TileValue(key, static_cast<std::int64_t>(i));
  }
  return tile;
}

void PutTile(collective::DataType type, void* to, std::int64_t count, std::span<const float> tile,
             bool add) {
  const auto put = [&]<typename Word>(Word* words, auto to_word, auto from_word) {
    if (add) {
      StoreTile(words, count, tile,
                [&](Word old, float value) { return to_word(from_word(old) + value); });
    } else {
      StoreTile(words, count, tile, [&](Word, float value) { return to_word(value); });
    }
  };
  const auto same = [](auto value) { return value; };
  switch (type) {
    case collective::DataType::kF32:
      return put(static_cast<float*>(to), same, same);
    case collective::DataType::kF64:
      return put(static_cast<double*>(to), same, same);
    case collective::DataType::kF16:
      return put(static_cast<std::uint16_t*>(to), collective::F16FromFloat,
                 collective::FloatFromF16);
    case collective::DataType::kBf16:
      return put(static_cast<std::uint16_t*>(to), collective::Bf16FromFloat,
                 collective::FloatFromBf16);
    default:
      LOCKSTEP_CHECK(false, "tiles are of floating-point numbers");
  }
}

}  // namespace lockstep::device::host
