// Our floats of 8 bits against CUDA's own, whose conversions also run on the host: NCCL reduces
// with those.
#include "core/collective/float8.h"

#include <cuda_fp8.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace lockstep::device::cuda {
namespace {

bool Same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(Float8, WidensAsCudaDoes) {
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    const auto bits = static_cast<std::uint8_t>(pattern);
    const auto widened = [&](__nv_fp8_interpretation_t format) {
      return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, format)));
    };
    EXPECT_TRUE(Same(collective::FloatFromF8E4M3(bits), widened(__NV_E4M3))) << pattern;
    EXPECT_TRUE(Same(collective::FloatFromF8E5M2(bits), widened(__NV_E5M2))) << pattern;
  }
}

// Of all 2^32 floats one in 61, which is prime to every step of the formats.
TEST(Float8, NarrowsAsCudaDoes) {
  constexpr std::uint64_t kStride = 61;
  std::int64_t differ = 0;
  for (std::uint64_t pattern = 0; pattern < std::uint64_t{1} << 32; pattern += kStride) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
    if (std::isnan(value)) continue;  // stays one, of no certain bits
    if (collective::F8E4M3FromFloat(value) !=
            __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3) ||
        collective::F8E5M2FromFloat(value) !=
            __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2)) {
      ++differ;
      ADD_FAILURE() << value;
      ASSERT_LT(differ, 10);
    }
  }
}

}  // namespace
}  // namespace lockstep::device::cuda
