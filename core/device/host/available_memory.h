// How much memory this process may still touch before the kernel would kill something.
#ifndef LOCKSTEP_CORE_DEVICE_HOST_AVAILABLE_MEMORY_H_
#define LOCKSTEP_CORE_DEVICE_HOST_AVAILABLE_MEMORY_H_

#include <cstdint>

namespace lockstep::device::host {

// Bytes: the smaller of MemAvailable in /proc/meminfo and the room under the memory limits of this
// process's control groups. INT64_MAX when the kernel says nothing.
std::int64_t AvailableMemoryBytes();

}  // namespace lockstep::device::host

#endif  // LOCKSTEP_CORE_DEVICE_HOST_AVAILABLE_MEMORY_H_
