// The memory of a device, taken by somebody else: another process, or a cache that does not give
// anything back.
#pragma once

#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"

namespace lockstep::stress::faults {

// Takes what `device` has free, until it refuses 64 KiB. The memory is free again when what is
// returned is destroyed. kUnsupported on the host, whose memory is not only ours to take.
Result<std::vector<std::unique_ptr<device::Buffer>>> FillDevice(device::Device& device);

}  // namespace lockstep::stress::faults
