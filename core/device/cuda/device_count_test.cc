#include "core/device/cuda/device_count.h"

#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace lockstep::device::cuda {
namespace {

bool HasDeviceFile() { return access("/dev/nvidiactl", F_OK) == 0; }

TEST(CudaDeviceCount, SaysEitherHowManyOrWhyNone) {
  const CudaDeviceCount result = CountCudaDevices();
  if (result.count > 0) {
    EXPECT_EQ(result.reason, "");
    return;
  }
  EXPECT_EQ(result.reason.rfind("no CUDA device: ", 0), 0u) << result.reason;
  EXPECT_GT(result.reason.size(), std::string("no CUDA device: ").size());
  EXPECT_EQ(result.reason.find('\n'), std::string::npos);
}

TEST(CudaDeviceCount, FindsNoneWithoutADriver) {
  if (HasDeviceFile()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  EXPECT_EQ(CountCudaDevices().count, 0);
}

// Numbers of cudaError_t, which its header fixes.
TEST(DescribeUnusable, SaysWhatToDo) {
  EXPECT_EQ(DescribeUnusable(3, 2),
            "CUDA device 3 can't be used: out of memory; its memory is full: end processes that "
            "hold some (`nvidia-smi` shows them)");
  EXPECT_NE(DescribeUnusable(0, 46).find("another process has it"), std::string::npos);
  EXPECT_NE(DescribeUnusable(0, 209).find("no code for it"), std::string::npos);
  EXPECT_NE(DescribeUnusable(0, 700).find("lockstep doctor"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::device::cuda
