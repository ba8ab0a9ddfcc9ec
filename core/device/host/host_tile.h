// Tensors that repeat a tile, in the host's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/collective/data_type.h"
#include "core/device/tile.h"

namespace lockstep::device::host {

// The first min(kTile, count) values; reads *source.input_at, if there is one.
std::vector<float> MakeTile(const TileSource& source, std::int64_t count);
// to[i], or with `add` to[i] +, tile[i mod kTile] in the type; `tile` has min(kTile, count) values.
void PutTile(collective::DataType type, void* to, std::int64_t count, std::span<const float> tile,
             bool add);

}  // namespace lockstep::device::host
