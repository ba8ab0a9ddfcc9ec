#include "core/device/cuda/cuda_call.h"

namespace lockstep::device::cuda {

Status CudaStatus(std::string_view call, cudaError_t error) {
  if (error == cudaSuccess) return OkStatus();
  return SystemFailed("cuda: {}: {} ({})", call, cudaGetErrorString(error),
                      cudaGetErrorName(error));
}

}  // namespace lockstep::device::cuda
