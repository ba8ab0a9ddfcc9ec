#include "stress/faults/device_memory.h"

#include <cstdint>
#include <utility>

#include "core/device/native_stream.h"

namespace lockstep::stress::faults {
namespace {

constexpr std::int64_t kLargest = std::int64_t{8} << 30;
constexpr std::int64_t kSmallest = 64 << 10;
// Of one size: a terabyte of the largest. Then halves follow, of which few fit.
constexpr int kMostOfASize = 128;

}  // namespace

Result<std::vector<std::unique_ptr<device::Buffer>>> FillDevice(device::Device& device) {
  auto* const native = dynamic_cast<device::NativeDevice*>(&device);
  if (native == nullptr) {
    return Unsupported("the fault 'device_memory_full' needs a GPU; choose --backend=nccl on one");
  }
  std::vector<std::unique_ptr<device::Buffer>> taken;
  for (std::int64_t bytes = kLargest; bytes >= kSmallest; bytes /= 2) {
    for (int i = 0; i < kMostOfASize; ++i) {
      Result<std::unique_ptr<device::Buffer>> buffer = native->AllocateOnDevice(bytes);
      if (!buffer.ok()) break;
      taken.push_back(std::move(buffer).value());
    }
  }
  return taken;
}

}  // namespace lockstep::stress::faults
