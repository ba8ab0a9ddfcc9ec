// What the gradient of any element must be. Most parameters repeat a tile of small integers; with
// PowerSGD a matrix has rank 1, so that compression loses nothing. The mean over ranks is computed
// once a tile.
#include "core/ddp/synthetic_gradient.h"

#include <algorithm>
#include <cstddef>

#include "core/base/check.h"
#include "core/base/random.h"
#include "core/collective/half.h"
#include "core/ddp/manifest_model.h"
#include "core/device/host/host_tile.h"

namespace lockstep::ddp {
namespace {

// Matrices as PowerSGD sees them: shape[0] rows.
bool IsMatrix(const TensorInfo& info) { return info.shape.size() > 1 && info.numel > 0; }
std::int64_t ColumnsOf(const TensorInfo& info) { return info.numel / info.shape[0]; }

// 1 to 4: of a row as each rank and input has it, of a column the same everywhere.
float RowFactor(int rank, std::int64_t input, int param, std::int64_t row) {
  return static_cast<float>(
      1 + (Mix64(device::TileKey(rank, input, param) + static_cast<std::uint64_t>(row)) & 3));
}
float ColumnFactor(int param, std::int64_t column) {
  return static_cast<float>(
      1 +
      (Mix64(static_cast<std::uint64_t>(param) * 7919 + static_cast<std::uint64_t>(column)) & 3));
}

}  // namespace

bool GradientIsTile(const TensorInfo& info, bool low_rank) { return !low_rank || !IsMatrix(info); }

double SyntheticGradient(int rank, std::int64_t input, int param, const TensorInfo& info,
                         std::int64_t element, bool low_rank) {
  if (GradientIsTile(info, low_rank)) {
    return device::TileValue(device::TileKey(rank, input, param), element % device::kTile);
  }
  const std::int64_t columns = ColumnsOf(info);
  return RowFactor(rank, input, param, element / columns) * ColumnFactor(param, element % columns);
}

void WriteLowRankGradient(int rank, std::int64_t input, int param, const TensorInfo& info,
                          bool overwrite, void* grad) {
  const std::int64_t columns = ColumnsOf(info);
  std::vector<float> row(static_cast<std::size_t>(columns));
  for (std::int64_t r = 0; r < info.shape[0]; ++r) {
    const float factor = RowFactor(rank, input, param, r);
    // A row is put tile by tile, since PutTile repeats what it is given every kTile elements.
    for (std::int64_t begin = 0; begin < columns; begin += device::kTile) {
      const std::int64_t length = std::min(device::kTile, columns - begin);
      row.resize(static_cast<std::size_t>(length));
      for (std::int64_t c = 0; c < length; ++c) {
        row[static_cast<std::size_t>(c)] = factor * ColumnFactor(param, begin + c);
      }
      auto* at =
          static_cast<std::byte*>(grad) + (r * columns + begin) * collective::SizeOf(info.type);
      device::host::PutTile(info.type, at, length, row, !overwrite);
    }
  }
}

double ElementOf(collective::DataType type, const void* data, std::int64_t element) {
  switch (type) {
    case collective::DataType::kF32:
      return static_cast<const float*>(data)[element];
    case collective::DataType::kF64:
      return static_cast<const double*>(data)[element];
    case collective::DataType::kF16:
      return collective::FloatFromF16(static_cast<const std::uint16_t*>(data)[element]);
    case collective::DataType::kBf16:
      return collective::FloatFromBf16(static_cast<const std::uint16_t*>(data)[element]);
    default:
      LOCKSTEP_CHECK(false, "gradients are floating-point");
  }
}

ExpectedGradient::ExpectedGradient(int ranks, std::int64_t first_input, std::int64_t inputs,
                                   int param, const TensorInfo& info, bool low_rank)
    : low_rank_(low_rank && IsMatrix(info)) {
  const std::int64_t length = low_rank_ ? info.shape[0] : std::min(device::kTile, info.numel);
  tile_.assign(static_cast<std::size_t>(length), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t input = first_input; input < first_input + inputs; ++input) {
      const std::uint64_t key = device::TileKey(rank, input, param);
      for (std::int64_t i = 0; i < length; ++i) {
        tile_[static_cast<std::size_t>(i)] +=
            low_rank_ ? RowFactor(rank, input, param, i) : device::TileValue(key, i);
      }
    }
  }
  for (double& value : tile_) value /= ranks;
  if (!low_rank_) return;
  columns_ = ColumnsOf(info);
  for (std::int64_t c = 0; c < columns_; ++c) row_.push_back(ColumnFactor(param, c));
}

}  // namespace lockstep::ddp
