// Which CUDA devices this process can use. No header of CUDA is needed.
#pragma once

#include <string>

namespace lockstep::device::cuda {

struct CudaDeviceCount {
  int count = 0;       // that the driver lists
  std::string reason;  // one line that begins with "no CUDA device:" when count is 0, else empty
};

// Makes no context on any.
CudaDeviceCount CountCudaDevices();

// Runs a kernel of one thread: a device that is older than the binary's architectures is listed,
// too. Makes the process's context on this device. 0, or a cudaError_t.
int TryCudaDevice(int device);

// One line: that the device can't be used, why, and what to do. `error`: a cudaError_t.
std::string DescribeUnusable(int device, int error);

}  // namespace lockstep::device::cuda
