// Rounding and conversion, bit by bit, where two paths must agree. The contract suite of kernels is
// instantiated elsewhere.
#include "core/device/host/host_kernels.h"

#include <bit>
#include <cmath>
#include <vector>

#include "core/collective/half.h"
#include "core/device/host/host_device.h"
#include "gtest/gtest.h"

namespace lockstep::device::host {
namespace {

class HostKernelsTest : public testing::Test {
 protected:
  HostKernels kernels_;
  std::unique_ptr<Stream> stream_ = HostDevice().NewInlineStream();
};

TEST_F(HostKernelsTest, ScaleRoundsTheFactorToTheTypeFirst) {
  const std::vector<float> from = {1.0f, 3.0f, 0.1f, -7.25f, 1e30f};
  std::vector<float> to(from.size());
  kernels_.Scale(*stream_, collective::DataType::kF32, to.data(), from.data(), 5, 1.0 / 3);
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(to[i], from[i] * static_cast<float>(1.0 / 3));
  }
}

TEST_F(HostKernelsTest, SixteenBitTypesAreRoundedOnce) {
  const std::uint16_t from = collective::F16FromFloat(2049.0f / 2);  // 1024.5, rounds to 1024
  std::uint16_t to = 0;
  kernels_.Divide(*stream_, collective::DataType::kF16, &to, &from, 1, 3);
  EXPECT_EQ(to, collective::F16FromFloat(1024.0f / 3));
  std::uint16_t sum = collective::Bf16FromFloat(256);
  const std::uint16_t one = collective::Bf16FromFloat(1);
  kernels_.Add(*stream_, collective::DataType::kBf16, &sum, &one, 1);
  EXPECT_EQ(collective::FloatFromBf16(sum), 256.0f);  // 257 is a tie, to even
}

TEST_F(HostKernelsTest, ConvertIsThatOfTheTypes) {
  const std::vector<float> from = {1.0f, 65519.0f, 65520.0f, 1e-8f, -0.0f, 3.14159f};
  std::vector<std::uint16_t> half(from.size());
  std::vector<float> back(from.size());
  const auto count = static_cast<std::int64_t>(from.size());
  kernels_.Convert(*stream_, collective::DataType::kF16, half.data(), collective::DataType::kF32,
                   from.data(), count);
  kernels_.Convert(*stream_, collective::DataType::kF32, back.data(), collective::DataType::kF16,
                   half.data(), count);
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(back[i], collective::FloatFromF16(collective::F16FromFloat(from[i])));
  }
  EXPECT_TRUE(std::isinf(back[2]));
  EXPECT_TRUE(std::signbit(back[4]));
}

// The vector path must agree with the plain conversion bit for bit, NaN apart from its payload.
TEST_F(HostKernelsTest, EveryHalfAndFloatsAroundThem) {
  for (const collective::DataType type :
       {collective::DataType::kF16, collective::DataType::kBf16}) {
    std::vector<std::uint16_t> halves(1 << 16);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
    std::vector<float> floats(halves.size());
    kernels_.Convert(*stream_, collective::DataType::kF32, floats.data(), type, halves.data(),
                     1 << 16);
    const bool f16 = type == collective::DataType::kF16;
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const float plain =
          f16 ? collective::FloatFromF16(halves[i]) : collective::FloatFromBf16(halves[i]);
      if (std::isnan(plain)) {
        EXPECT_TRUE(std::isnan(floats[i]));
        floats[i] = 0;
        continue;
      }
      EXPECT_EQ(std::bit_cast<std::uint32_t>(floats[i]), std::bit_cast<std::uint32_t>(plain));
      floats[i] += floats[i] * 0x1p-11f * static_cast<float>(i % 3);  // ties and others
    }
    std::vector<std::uint16_t> back(floats.size());
    kernels_.Convert(*stream_, type, back.data(), collective::DataType::kF32, floats.data(),
                     1 << 16);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(back[i],
                f16 ? collective::F16FromFloat(floats[i]) : collective::Bf16FromFloat(floats[i]))
          << floats[i];
    }
  }
}

TEST_F(HostKernelsTest, InPlaceIsAllowed) {
  std::vector<double> values = {1, 2, 3};
  kernels_.Scale(*stream_, collective::DataType::kF64, values.data(), values.data(), 3, 0.5);
  EXPECT_EQ(values, (std::vector<double>{0.5, 1, 1.5}));
  kernels_.Zero(*stream_, values.data(), 16);
  EXPECT_EQ(values, (std::vector<double>{0, 0, 1.5}));
}

// How long it takes is a matter of scripts/benchmarks.
TEST_F(HostKernelsTest, ComputeOnlyReads) {
  for (const std::int64_t bytes : {4, 4096, 1 << 20}) {
    const std::vector<char> memory(static_cast<std::size_t>(bytes), 1);
    kernels_.Compute(*stream_, 1e6, memory.data(), bytes);
    EXPECT_TRUE(stream_->status().ok());
    EXPECT_EQ(memory, std::vector<char>(static_cast<std::size_t>(bytes), 1));
  }
}

}  // namespace
}  // namespace lockstep::device::host
