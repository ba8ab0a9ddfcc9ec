// The host as a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/device/device.h"

namespace lockstep::device::host {

// Buffers are page-aligned, zeroed and touched, with the kernel's default page policy (as a plain
// program's are). NewStream gives a queue with a thread of its own.
class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  // kEnvironment when the memory is not there, before the kernel kills anyone for it.
  Result<std::unique_ptr<Buffer>> Allocate(std::int64_t bytes) override;
  std::unique_ptr<Event> NewEvent() override;
  std::unique_ptr<Stream> NewStream() override;
  std::unique_ptr<Stream> NewInlineStream() override;
};

}  // namespace lockstep::device::host
