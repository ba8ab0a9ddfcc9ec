#include "core/device/testing/kernels_contract.h"

#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"

namespace lockstep::device::host {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, KernelsContract,
                         testing::Values(KernelsUnderTest{[]() -> std::unique_ptr<Device> {
                                                            return std::make_unique<HostDevice>();
                                                          },
                                                          []() -> std::unique_ptr<Kernels> {
                                                            return std::make_unique<HostKernels>();
                                                          }}));

}  // namespace
}  // namespace lockstep::device::host
