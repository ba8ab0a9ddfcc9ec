// What the kernels of this room share; for sources that nvcc compiles. Internal to this room.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/collective/data_type.h"

namespace lockstep::device::cuda {

inline constexpr int kThreads = 256;  // a block

inline int BlocksFor(std::int64_t items, int most) {
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<int>(std::clamp<std::int64_t>(blocks, 1, most));
}

// Of the calling thread, where a grid strides over more items than it has threads.
__device__ inline std::int64_t FirstItem() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t ItemStep() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// What a type is computed in, as PyTorch does: 16-bit types in float, rounded once.
__device__ inline float Widen(__half value) { return __half2float(value); }
__device__ inline float Widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float Widen(float value) { return value; }
__device__ inline double Widen(double value) { return value; }

// Calls `function` with a null pointer of the type's word.
template <typename Function>
cudaError_t WithWord(collective::DataType type, Function function) {
  switch (type) {
    case collective::DataType::kF16:
      return function(static_cast<__half*>(nullptr));
    case collective::DataType::kBf16:
      return function(static_cast<__nv_bfloat16*>(nullptr));
    case collective::DataType::kF32:
      return function(static_cast<float*>(nullptr));
    case collective::DataType::kF64:
      return function(static_cast<double*>(nullptr));
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace lockstep::device::cuda
