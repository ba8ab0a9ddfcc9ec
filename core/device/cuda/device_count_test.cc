#include "core/device/cuda/device_count.h"

#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace lockstep::device::cuda {
namespace {

bool HasDeviceFile() { return access("/dev/nvidiactl", F_OK) == 0; }

TEST(CudaDeviceCount, SaysEitherHowManyOrWhyNone) {
  const CudaDeviceCount result = QueryCudaDeviceCount();
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
  EXPECT_EQ(QueryCudaDeviceCount().count, 0);
}

}  // namespace
}  // namespace lockstep::device::cuda
