#include "core/comm/nccl/choices.h"
#include "core/comm/nccl/platform.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/cuda_pattern.h"

namespace lockstep::comm::nccl {

Result<NcclPlatform> OpenOnCuda(const NcclLibraryFacts& library, int local_rank, bool host_access) {
  const NcclChoices choices = NcclChoicesFromEnvironment();
  NcclPlatform platform;
  if (choices.ranks_per_gpu > 1) {
    ShareGpu(library.version_code, local_rank, choices.ranks_per_gpu);
  }
  const device::cuda::CudaMemory memory =
      host_access ? device::cuda::CudaMemory::kManaged : device::cuda::CudaMemory::kDevice;
  const int index = DeviceOf(local_rank, choices.ranks_per_gpu);
  auto device = device::cuda::OpenCudaDevice(index, memory);
  if (!device.ok()) {
    return Status(device.status().code(), "--backend=nccl: " + device.status().message());
  }
  platform.device = std::move(device).value();
  platform.gpu_bus = device::cuda::CudaBus(index);
  LOCKSTEP_ASSIGN_OR_RETURN(platform.kernels, device::cuda::OpenCudaKernels());
  if (!host_access) {
    LOCKSTEP_ASSIGN_OR_RETURN(platform.pattern_memory, device::cuda::OpenCudaPatternMemory());
  }
  return platform;
}

}  // namespace lockstep::comm::nccl
