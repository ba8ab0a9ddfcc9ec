#pragma once

#include <string>

namespace lockstep::device::cuda {

// How many CUDA devices this process can use, or why it can use none.
struct CudaDeviceCount {
  int count = 0;       // devices that run our kernels
  std::string reason;  // one line that begins with "no CUDA device:" when count is 0, else empty
};

// Asks the driver, and proves each counted device by running a one-thread kernel on it: a listed
// device that is older than the binary's architectures does not count. Creates a context on every
// device: call it in a worker, never in an agent.
CudaDeviceCount QueryCudaDeviceCount();

}  // namespace lockstep::device::cuda
