#include "core/device/testing/device_contract.h"

#include "core/device/host/host_device.h"

namespace lockstep::device::host {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Host, DeviceContract,
    testing::Values(DeviceUnderTest{
        []() -> std::unique_ptr<Device> { return std::make_unique<HostDevice>(); },
        [](Buffer& buffer, void* to, std::size_t bytes) {
          if (bytes > 0) std::memcpy(to, buffer.data(), bytes);  // nullptr where there are none
        },
        [](Buffer& buffer, const void* from, std::size_t bytes) {
          if (bytes > 0) std::memcpy(buffer.data(), from, bytes);
        }}));

}  // namespace
}  // namespace lockstep::device::host
