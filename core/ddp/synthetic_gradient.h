// The values behind core/ddp/manifest_model.h. A parameter's gradient repeats a tile of small
// integers (core/device/tile.h), which depends on rank, input and parameter. Internal to the
// manifest model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective/data_type.h"
#include "core/ddp/module.h"
#include "core/device/tile.h"

namespace lockstep::ddp {

// Whether the gradient is a tile that any device writes; else it is a matrix of rank 1.
bool GradientIsTile(const TensorInfo& info, bool low_rank);
// Of such a matrix: grad = or += what SyntheticGradient says.
void WriteLowRankGradient(int rank, std::int64_t input, int param, const TensorInfo& info,
                          bool overwrite, void* grad);
double ElementOf(collective::DataType type, const void* data, std::int64_t element);

// Mean over the ranks of the sum over the inputs.
class ExpectedGradient {
 public:
  ExpectedGradient(int ranks, std::int64_t first_input, std::int64_t inputs, int param,
                   const TensorInfo& info, bool low_rank);
  double At(std::int64_t element) const {
    if (!low_rank_) return tile_[static_cast<std::size_t>(element % device::kTile)];
    return tile_[static_cast<std::size_t>(element / columns_)] *
           row_[static_cast<std::size_t>(element % columns_)];
  }

 private:
  bool low_rank_;
  std::int64_t columns_ = 1;
  std::vector<double> tile_;  // low_rank: the factor of each row
  std::vector<double> row_;   // low_rank: the factor of each column
};

}  // namespace lockstep::ddp
