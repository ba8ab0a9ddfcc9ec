// A GPU as a device. No header of CUDA is needed to use it.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::device::cuda {

// Where buffers lie.
enum class CudaMemory {
  kManaged,  // the host may read and write it too; its pages move to whoever touches them
  kDevice,   // only the device may
};

// Streams are created without the legacy default stream's implicit synchronization. Work that is
// enqueued as a function runs on a thread of the host in stream order; it must not call CUDA. On an
// inline stream it runs on the calling thread once the device got there. All streams are
// NativeStreams, the device is a NativeDevice.
//
// kEnvironment: "no CUDA device: …", there is none of this number, or it can't be used. Makes a
// context on this device only.
Result<std::unique_ptr<Device>> OpenCudaDevice(int index, CudaMemory memory = CudaMemory::kManaged);

// Where a device sits, as "0000:3b:00.0"; empty when CUDA does not say.
std::string CudaBus(int index);

// Arithmetic on the current device, on streams of an OpenCudaDevice.
Result<std::unique_ptr<Kernels>> OpenCudaKernels();

}  // namespace lockstep::device::cuda
