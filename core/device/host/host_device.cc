#include "core/device/host/host_device.h"

#include "core/device/host/fifo_stream.h"
#include "core/device/host/host_buffer.h"
#include "core/device/host/host_event.h"
#include "core/device/host/inline_stream.h"

namespace lockstep::device::host {

Result<std::unique_ptr<Buffer>> HostDevice::Allocate(std::int64_t bytes) {
  return AllocateHostBuffer(bytes);
}

std::unique_ptr<Event> HostDevice::NewEvent() { return std::make_unique<HostEvent>(); }

std::unique_ptr<Stream> HostDevice::NewStream() { return std::make_unique<FifoStream>(); }

std::unique_ptr<Stream> HostDevice::NewInlineStream() { return std::make_unique<InlineStream>(); }

}  // namespace lockstep::device::host
