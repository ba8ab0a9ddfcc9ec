// Host memory, page-aligned and touched.
#ifndef LOCKSTEP_CORE_DEVICE_HOST_HOST_BUFFER_H_
#define LOCKSTEP_CORE_DEVICE_HOST_HOST_BUFFER_H_

#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/device/device.h"

namespace lockstep::device::host {

// An anonymous private mapping with the kernel's default page policy: what malloc gives a plain
// program for a large block. Huge pages are neither asked for nor refused, because the figures are
// to be those of a plain program.
//
// kEnvironment when the memory is not there, found out before the kernel kills anyone: available
// memory is looked at before the mapping and again while its pages are touched (other ranks of this
// host allocate at the same time).
Result<std::unique_ptr<Buffer>> AllocateHostBuffer(std::int64_t bytes);

}  // namespace lockstep::device::host

#endif  // LOCKSTEP_CORE_DEVICE_HOST_HOST_BUFFER_H_
