// Memory, sharing and properties of one GPU. Each call makes the device current for its thread
// first, because CUDA keeps that per thread. Managed memory is refused beyond the device's free
// memory, where pages would move to and fro.
#include "core/device/cuda/cuda_device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "core/base/units.h"
#include "core/device/cuda/cuda_call.h"
#include "core/device/cuda/cuda_stream.h"
#include "core/device/cuda/device_count.h"
#include "core/device/cuda/stream_memory.h"
#include "core/device/native_stream.h"
#include "fmt/format.h"

namespace lockstep::device::cuda {
namespace {

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(void* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}
  ~CudaBuffer() override { cudaFree(data_); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  void* data() override { return data_; }
  std::int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  std::int64_t bytes_;
};

class CudaDevice final : public Device, public NativeDevice {
 public:
  CudaDevice(int index, CudaMemory memory) : index_(index), memory_(memory) {}
  ~CudaDevice() override {
    signals_->Clear();
    for (void* const memory : shared_) cudaHostUnregister(memory);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string_view name() const override { return "cuda"; }
  Result<std::unique_ptr<Buffer>> Allocate(std::int64_t bytes) override {
    return Allocate(bytes, memory_);
  }
  Result<std::unique_ptr<Buffer>> AllocateOnDevice(std::int64_t bytes) override {
    return Allocate(bytes, CudaMemory::kDevice);
  }
  std::unique_ptr<Event> NewEvent() override {
    static_cast<void>(EnterThread());
    return std::make_unique<CudaEvent>(signals_);
  }
  std::unique_ptr<Stream> NewStream() override {
    return std::make_unique<CudaStream>(index_, /*inline_execution=*/false);
  }
  std::unique_ptr<Stream> NewInlineStream() override {
    return std::make_unique<CudaStream>(index_, /*inline_execution=*/true);
  }
  Status EnterThread() override { return CudaStatus("cudaSetDevice", cudaSetDevice(index_)); }
  int ComputeCapability() const override;
  Result<WordWriter> ShareMemory(std::span<std::byte> memory) override;

 private:
  Result<std::unique_ptr<Buffer>> Allocate(std::int64_t bytes, CudaMemory memory);

  int index_;
  CudaMemory memory_;
  std::vector<void*> shared_;
  std::shared_ptr<Signals> signals_ = std::make_shared<Signals>();
};

Result<WordWriter> CudaDevice::ShareMemory(std::span<std::byte> memory) {
  LOCKSTEP_RETURN_IF_ERROR(EnterThread());
  if (std::ranges::find(shared_, memory.data()) == shared_.end()) {
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaHostRegister, memory.data(), memory.size(),
                                  cudaHostRegisterMapped | cudaHostRegisterPortable);
    shared_.push_back(memory.data());
  }
  void* address = nullptr;
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaHostGetDevicePointer, &address, memory.data(), 0);
  if (address != memory.data()) {
    return Unsupported("cuda: this device reaches the host's memory by other addresses");
  }
  return StreamMemoryMethod() == "kernel" ? WordWriter::kKernel : WordWriter::kStreamOperations;
}

Status NotThere(std::int64_t bytes, std::size_t free_bytes) {
  return EnvironmentError(
      "{} of device memory are not there ({} are free); choose smaller sizes or another device",
      FormatBytes(bytes), FormatBytes(static_cast<std::int64_t>(free_bytes)));
}

int CudaDevice::ComputeCapability() const {
  int major = 0;
  int minor = 0;
  const bool told =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index_) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index_) == cudaSuccess;
  return told ? major * 10 + minor : 0;
}

Result<std::unique_ptr<Buffer>> CudaDevice::Allocate(std::int64_t bytes, CudaMemory memory) {
  if (bytes < 0) return InvalidInput("a buffer of {} bytes", bytes);
  LOCKSTEP_RETURN_IF_ERROR(EnterThread());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMemGetInfo, &free_bytes, &total_bytes);
  const auto wanted = static_cast<std::size_t>(bytes);
  // Managed memory could be larger than the device's, and would then be moved to and fro.
  if (wanted > free_bytes) return NotThere(bytes, free_bytes);
  void* data = nullptr;
  if (bytes > 0) {
    const cudaError_t error = memory == CudaMemory::kManaged
                                  ? cudaMallocManaged(&data, wanted, cudaMemAttachGlobal)
                                  : cudaMalloc(&data, wanted);
    if (error == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      return NotThere(bytes, free_bytes);
    }
    LOCKSTEP_RETURN_IF_ERROR(CudaStatus("cudaMalloc", error));
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMemset, data, 0, wanted);  // touches its pages
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize);
  }
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(data, bytes));
}

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(int index, CudaMemory memory) {
  const CudaDeviceCount devices = CountCudaDevices();
  if (devices.count == 0) {
    return EnvironmentError(devices.reason +
                            "; install NVIDIA's driver, or choose another backend");
  }
  if (index >= devices.count) {
    return EnvironmentError(
        "a rank of this host needs CUDA device {}, and there {}; start fewer ranks on it, or, to "
        "test without regard to speed, give --ranks-per-gpu",
        index, devices.count == 1 ? "is 1" : fmt::format("are {}", devices.count));
  }
  if (const int error = TryCudaDevice(index)) {
    return EnvironmentError(DescribeUnusable(index, error));
  }
  auto device = std::make_unique<CudaDevice>(index, memory);
  LOCKSTEP_RETURN_IF_ERROR(device->EnterThread());
  return std::unique_ptr<Device>(std::move(device));
}

std::string CudaBus(int index) {
  std::array<char, 32> bus{};
  const bool known =
      cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index) == cudaSuccess;
  static_cast<void>(cudaGetLastError());
  return known ? bus.data() : "";
}

}  // namespace lockstep::device::cuda
