// Words of the host's memory that a stream writes and waits for. Internal to this room.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "core/base/status.h"

namespace lockstep::device::cuda {

// The driver's stream memory operations where it has them for the current device, else kernels of
// one thread. Addresses are the device's of mapped memory.
Status StreamWrite32(cudaStream_t stream, std::uint32_t* device_address, std::uint32_t value);
Status StreamWrite64(cudaStream_t stream, std::uint64_t* device_address, std::uint64_t value);
Status StreamWaitAtLeast32(cudaStream_t stream, std::uint32_t* device_address, std::uint32_t value);
// Adds one, by a kernel. For words that nobody else writes meanwhile.
Status StreamIncrement64(cudaStream_t stream, std::uint64_t* device_address);
// "cuStreamWriteValue64" or "kernel".
std::string_view StreamMemoryMethod();

// The kernels.
void LaunchWrite32(cudaStream_t stream, std::uint32_t* address, std::uint32_t value);
void LaunchWrite64(cudaStream_t stream, std::uint64_t* address, std::uint64_t value);
void LaunchIncrement64(cudaStream_t stream, std::uint64_t* address);
void LaunchWaitAtLeast32(cudaStream_t stream, std::uint32_t* address, std::uint32_t value);

}  // namespace lockstep::device::cuda
