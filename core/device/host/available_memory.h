// How much memory this process may still touch before the kernel would kill something.
#pragma once

#include <cstdint>

namespace lockstep::device::host {

// Bytes: the smaller of MemAvailable in /proc/meminfo and the room under the memory limits of this
// process's control groups. INT64_MAX when the kernel says nothing.
std::int64_t AvailableMemoryBytes();

}  // namespace lockstep::device::host
