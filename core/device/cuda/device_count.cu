#include <cuda_runtime.h>

#include <string>

#include "core/device/cuda/device_count.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kProof = 0x10c5;

__global__ void WriteProof(int* out) { *out = kProof; }

// Runs the kernel on `device`; cudaSuccess only when its result arrived.
cudaError_t Prove(int device) {
  int* proof = nullptr;
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaMalloc(&proof, sizeof(int));
  if (error != cudaSuccess) return error;
  WriteProof<<<1, 1>>>(proof);
  error = cudaGetLastError();
  int got = 0;
  if (error == cudaSuccess) error = cudaMemcpy(&got, proof, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(proof);
  if (error == cudaSuccess && got != kProof) error = cudaErrorUnknown;
  return error;
}

}  // namespace

CudaDeviceCount QueryCudaDeviceCount() {
  CudaDeviceCount result;
  int listed = 0;
  cudaError_t error = cudaGetDeviceCount(&listed);
  for (int device = 0; error == cudaSuccess && device < listed; ++device) {
    error = Prove(device);
    if (error == cudaSuccess) ++result.count;
  }
  if (error == cudaSuccess && listed == 0) error = cudaErrorNoDevice;
  if (result.count == 0) {
    result.reason = std::string("no CUDA device: ") + cudaGetErrorString(error);
  }
  return result;
}

}  // namespace lockstep::device::cuda
