#include "core/device/cuda/stream_memory.h"

namespace lockstep::device::cuda {
namespace {

template <typename Word>
__global__ void Write(Word* address, Word value) {
  __threadfence_system();  // what came before on this stream is seen before the word is
  *static_cast<volatile Word*>(address) = value;
  __threadfence_system();
}

__global__ void Increment(std::uint64_t* address) {
  __threadfence_system();
  volatile std::uint64_t* const word = address;
  *word = *word + 1;
  __threadfence_system();
}

__global__ void WaitAtLeast(const std::uint32_t* address, std::uint32_t value) {
  while (*static_cast<const volatile std::uint32_t*>(address) < value) __nanosleep(1000);
  __threadfence_system();
}

}  // namespace

void LaunchWrite32(cudaStream_t stream, std::uint32_t* address, std::uint32_t value) {
  Write<<<1, 1, 0, stream>>>(address, value);
}

void LaunchWrite64(cudaStream_t stream, std::uint64_t* address, std::uint64_t value) {
  Write<<<1, 1, 0, stream>>>(address, value);
}

void LaunchIncrement64(cudaStream_t stream, std::uint64_t* address) {
  Increment<<<1, 1, 0, stream>>>(address);
}

void LaunchWaitAtLeast32(cudaStream_t stream, std::uint32_t* address, std::uint32_t value) {
  WaitAtLeast<<<1, 1, 0, stream>>>(address, value);
}

}  // namespace lockstep::device::cuda
