// The kernels of this room, as functions that enqueue them. Internal to this room.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/collective/data_type.h"
#include "core/device/tile.h"

namespace lockstep::device::cuda {

enum class CudaArithmetic { kScale, kDivide, kAdd };

// to[i] = to[i] op from[i], or from[i] op operand; `type` is f16, bf16, f32 or f64.
cudaError_t LaunchElementwise(cudaStream_t stream, CudaArithmetic arithmetic,
                              collective::DataType type, void* to, const void* from,
                              std::int64_t count, double operand);
cudaError_t LaunchConvert(cudaStream_t stream, collective::DataType to_type, void* to,
                          collective::DataType from_type, const void* from, std::int64_t count);
// As Kernels::WriteTile and Increment.
cudaError_t LaunchWriteTile(cudaStream_t stream, collective::DataType type, void* to,
                            std::int64_t count, const TileSource& source, bool add);
cudaError_t LaunchIncrement(cudaStream_t stream, std::int64_t* number);
// Reads `total` bytes: the range of `bytes` from its begin again and again.
cudaError_t LaunchRead(cudaStream_t stream, const void* from, std::int64_t bytes,
                       std::int64_t total);
// out = a b after MatrixProductSteps(rows) steps. With another number of them it takes another
// time, in proportion, and `out` is of no use.
cudaError_t LaunchMatrixProduct(cudaStream_t stream, collective::DataType type, void* out,
                                const void* a, const void* b, std::int64_t rows,
                                std::int64_t steps);
std::int64_t MatrixProductSteps(std::int64_t rows);

}  // namespace lockstep::device::cuda
