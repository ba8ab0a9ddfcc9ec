// Words of memory that a stream writes and waits for, by the driver's stream operations. They are
// looked up when needed and tried once on a word, because device attributes changed their meaning.
// Where they do not work, kernels of one thread take their place.
#include "core/device/cuda/stream_memory.h"

#include <cuda.h>

#include "core/device/cuda/cuda_call.h"

namespace lockstep::device::cuda {
namespace {

// The driver's functions, which nothing is linked with: a machine without a driver has none.
struct Operations {
  decltype(&cuStreamWriteValue32) write32 = nullptr;
  decltype(&cuStreamWriteValue64) write64 = nullptr;
  decltype(&cuStreamWaitValue32) wait32 = nullptr;
  bool complete() const { return write32 != nullptr && write64 != nullptr && wait32 != nullptr; }
};

template <typename Function>
void Find(const char* name, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  // The version in which these have their present meaning for all devices.
  constexpr unsigned kVersion = 12000;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found);
  const bool there = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
  function = there ? reinterpret_cast<Function>(address) : nullptr;
}

// Tries them on a word of memory: attributes of devices changed their meaning over the versions.
bool Work(const Operations& operations) {
  cudaStream_t stream = nullptr;
  std::uint64_t* word = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return false;
  bool works = cudaHostAlloc(&word, sizeof(*word), cudaHostAllocMapped) == cudaSuccess;
  if (works) {
    *word = 0;
    const auto address = reinterpret_cast<CUdeviceptr>(word);
    works = operations.write64(stream, address, 1, 0) == CUDA_SUCCESS &&
            operations.wait32(stream, address, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS &&
            cudaStreamSynchronize(stream) == cudaSuccess && *word == 1;
    cudaFreeHost(word);
  }
  cudaStreamDestroy(stream);
  static_cast<void>(cudaGetLastError());
  return works;
}

const Operations& TheOperations() {
  static const Operations operations = [] {
    Operations found;
    Find("cuStreamWriteValue32", found.write32);
    Find("cuStreamWriteValue64", found.write64);
    Find("cuStreamWaitValue32", found.wait32);
    return found.complete() && Work(found) ? found : Operations();
  }();
  return operations;
}

Status DriverStatus(std::string_view call, CUresult result) {
  if (result == CUDA_SUCCESS) return OkStatus();
  return SystemFailed("cuda: {}: error {}", call, static_cast<int>(result));
}

CUdeviceptr AddressOf(void* device_address) {
  return reinterpret_cast<CUdeviceptr>(device_address);
}

Status Launched() { return CudaStatus("kernel launch", cudaGetLastError()); }

}  // namespace

Status StreamWrite32(cudaStream_t stream, std::uint32_t* address, std::uint32_t value) {
  const auto write = TheOperations().write32;
  if (write == nullptr) return LaunchWrite32(stream, address, value), Launched();
  return DriverStatus("cuStreamWriteValue32", write(stream, AddressOf(address), value, 0));
}

Status StreamWrite64(cudaStream_t stream, std::uint64_t* address, std::uint64_t value) {
  const auto write = TheOperations().write64;
  if (write == nullptr) return LaunchWrite64(stream, address, value), Launched();
  return DriverStatus("cuStreamWriteValue64", write(stream, AddressOf(address), value, 0));
}

Status StreamWaitAtLeast32(cudaStream_t stream, std::uint32_t* address, std::uint32_t value) {
  const auto wait = TheOperations().wait32;
  if (wait == nullptr) return LaunchWaitAtLeast32(stream, address, value), Launched();
  return DriverStatus("cuStreamWaitValue32",
                      wait(stream, AddressOf(address), value, CU_STREAM_WAIT_VALUE_GEQ));
}

Status StreamIncrement64(cudaStream_t stream, std::uint64_t* address) {
  return LaunchIncrement64(stream, address), Launched();
}

std::string_view StreamMemoryMethod() {
  return TheOperations().complete() ? "cuStreamWriteValue64" : "kernel";
}

}  // namespace lockstep::device::cuda
