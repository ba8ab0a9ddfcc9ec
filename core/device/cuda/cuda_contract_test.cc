#include <cuda_runtime.h>

#include <cstdlib>

#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/device_count.h"
#include "core/device/testing/device_contract.h"
#include "core/device/testing/kernels_contract.h"

namespace lockstep::device::cuda {
namespace {

// Without a device there is nothing to hold a contract on; the other tests of this room say so.
bool Here() { return CountCudaDevices().count > 0; }

std::vector<DeviceUnderTest> Devices() {
  if (!Here()) return {};
  return {{[] {
             auto device = OpenCudaDevice(0);
             return device.ok() ? std::move(device).value() : nullptr;
           },
           [](Buffer& buffer, void* to, std::size_t bytes) {
             EXPECT_EQ(cudaMemcpy(to, buffer.data(), bytes, cudaMemcpyDefault), cudaSuccess);
           },
           [](Buffer& buffer, const void* from, std::size_t bytes) {
             EXPECT_EQ(cudaMemcpy(buffer.data(), from, bytes, cudaMemcpyDefault), cudaSuccess);
           }}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceContract);
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceContract, testing::ValuesIn(Devices()));

std::vector<KernelsUnderTest> KernelsHere() {
  if (!Here()) return {};
  return {{[] { return std::move(OpenCudaDevice(0).value()); },
           [] { return std::move(OpenCudaKernels().value()); }}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelsContract);
INSTANTIATE_TEST_SUITE_P(Cuda, KernelsContract, testing::ValuesIn(KernelsHere()));

TEST(OpenCudaDevice, SaysWhatIsMissing) {
  if (Here()) {
    const auto device = OpenCudaDevice(CountCudaDevices().count);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.status().code(), StatusCode::kEnvironment);
    EXPECT_NE(device.status().message().find("--ranks-per-gpu"), std::string::npos);
    return;
  }
  const auto device = OpenCudaDevice(0);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), StatusCode::kEnvironment);
  EXPECT_EQ(device.status().message().rfind("no CUDA device: ", 0), 0u);
  EXPECT_EQ(device.status().message().find('\n'), std::string::npos);
  EXPECT_FALSE(OpenCudaKernels().ok());
}

}  // namespace
}  // namespace lockstep::device::cuda
