#include <cuda_runtime.h>

#include <string>

#include "core/device/cuda/device_count.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kProof = 0x10c5;

__global__ void WriteProof(int* out) { *out = kProof; }

std::string Remedy(int error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "its memory is full: end processes that hold some (`nvidia-smi` shows them)";
    case cudaErrorDevicesUnavailable:
      return "another process has it for itself: end that, or change its compute mode";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "this build has no code for it: build with a toolkit that knows it";
    default:
      return "run `lockstep doctor`, or choose another backend";
  }
}

}  // namespace

CudaDeviceCount CountCudaDevices() {
  CudaDeviceCount result;
  cudaError_t error = cudaGetDeviceCount(&result.count);
  if (error == cudaSuccess && result.count == 0) error = cudaErrorNoDevice;
  if (error != cudaSuccess) return {0, std::string("no CUDA device: ") + cudaGetErrorString(error)};
  return result;
}

int TryCudaDevice(int device) {
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

std::string DescribeUnusable(int device, int error) {
  return "CUDA device " + std::to_string(device) + " can't be used: " +
         cudaGetErrorString(static_cast<cudaError_t>(error)) + "; " + Remedy(error);
}

}  // namespace lockstep::device::cuda
