// CUDA's errors as ours. Internal to this room.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "core/base/status.h"

namespace lockstep::device::cuda {

// OK, or kSystemFailed "cuda: CALL: what CUDA says (NAME)".
Status CudaStatus(std::string_view call, cudaError_t error);

}  // namespace lockstep::device::cuda

#define LOCKSTEP_RETURN_IF_CUDA_ERROR(call, ...) \
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus(#call, call(__VA_ARGS__)))
