// What the arithmetic of every device must do, as a test suite that each of them instantiates:
//   INSTANTIATE_TEST_SUITE_P(Host, KernelsContract, testing::Values(KernelsUnderTest{...}));
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/collective/data_type.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "core/device/tile.h"
#include "gtest/gtest.h"

namespace lockstep::device {

// Buffers of the device can be read and written by the host.
struct KernelsUnderTest {
  std::unique_ptr<Device> (*make_device)();
  std::unique_ptr<Kernels> (*make_kernels)();
};

class KernelsContract : public testing::TestWithParam<KernelsUnderTest> {
 protected:
  static constexpr collective::DataType kTypes[] = {
      collective::DataType::kF16, collective::DataType::kBf16, collective::DataType::kF32,
      collective::DataType::kF64};

  void Finish() {
    const Status status = stream_->Synchronize(Deadline::AfterSeconds(60));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::unique_ptr<Buffer> Make(std::int64_t bytes) {
    return std::move(device_->Allocate(bytes).value());
  }
  // Numbers in the type.
  std::unique_ptr<Buffer> Of(collective::DataType type, const std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    auto floats = Make(count * 4);
    std::copy(values.begin(), values.end(), static_cast<float*>(floats->data()));
    auto made = Make(count * collective::SizeOf(type));
    kernels_->Convert(*stream_, type, made->data(), collective::DataType::kF32, floats->data(),
                      count);
    Finish();
    return made;
  }
  std::vector<float> Floats(collective::DataType type, Buffer& buffer, std::int64_t count) {
    auto floats = Make(count * 4);
    kernels_->Convert(*stream_, collective::DataType::kF32, floats->data(), type, buffer.data(),
                      count);
    Finish();
    const auto* begin = static_cast<const float*>(floats->data());
    return {begin, begin + count};
  }
  std::vector<float> Product(collective::DataType type, const std::vector<float>& a,
                             const std::vector<float>& b, std::int64_t rows) {
    auto left = Of(type, a), right = Of(type, b);
    auto out = Of(type, std::vector<float>(a.size(), -7));  // what a product must overwrite
    kernels_->MatrixProduct(*stream_, type, out->data(), left->data(), right->data(), rows);
    return Floats(type, *out, rows * rows);
  }

  std::unique_ptr<Device> device_ = GetParam().make_device();
  std::unique_ptr<Kernels> kernels_ = GetParam().make_kernels();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
};

TEST_P(KernelsContract, AProductByHand) {
  for (const collective::DataType type : kTypes) {
    SCOPED_TRACE(collective::NameOf(type));
    EXPECT_EQ(Product(type, {3}, {-5}, 1), (std::vector<float>{-15}));
    EXPECT_EQ(Product(type, {1, 2, 3, 4}, {5, 6, 7, 8}, 2), (std::vector<float>{19, 22, 43, 50}));
    EXPECT_EQ(Product(type, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 0, 1, 0, 1, 0, 1, 0, 0}, 3),
              (std::vector<float>{3, 2, 1, 6, 5, 4, 9, 8, 7}));
  }
}

// A cyclic shift moves every column to where nothing else of the tile comes from, so that a product
// that reads a wrong row, column or tile shows it. Rows around a tile's size, and not multiples.
TEST_P(KernelsContract, AShiftOfTheColumnsOfEverySize) {
  for (const collective::DataType type : kTypes) {
    for (const std::int64_t rows : {2, 31, 32, 33, 64, 70, 129}) {
      const auto count = static_cast<std::size_t>(rows * rows);
      std::vector<float> a(count), shift(count), expected(count);
      for (std::int64_t i = 0; i < rows; ++i) {
        shift[static_cast<std::size_t>(i * rows + (i + 1) % rows)] = 1;
        for (std::int64_t j = 0; j < rows; ++j) {
          const auto value = static_cast<float>((i * 37 + j * 11) % 251);  // exact in bf16
          a[static_cast<std::size_t>(i * rows + j)] = value;
          expected[static_cast<std::size_t>(i * rows + (j + 1) % rows)] = value;
        }
      }
      EXPECT_EQ(Product(type, a, shift, rows), expected)
          << collective::NameOf(type) << ", " << rows << " rows";
    }
  }
}

// A sum of 300 ones: in bf16 it would stop at 256, whose neighbour is 258.
TEST_P(KernelsContract, SumsAreWiderThanTheirType) {
  constexpr std::int64_t kRows = 300;
  const std::vector<float> ones(kRows * kRows, 1.0f);
  for (const collective::DataType type : kTypes) {
    EXPECT_EQ(Product(type, ones, ones, kRows), std::vector<float>(kRows * kRows, 300.0f))
        << collective::NameOf(type);
  }
  // 2048 + 1 + 1 in f16: each single sum would be rounded back to 2048.
  std::vector<float> a(9, 1.0f), b(9, 1.0f);
  a[0] = a[3] = a[6] = 2048;
  EXPECT_EQ(Product(collective::DataType::kF16, a, b, 3), std::vector<float>(9, 2050.0f));
}

// How long they take is a matter of scripts/benchmarks.
TEST_P(KernelsContract, ProductsOfEveryTypeEnd) {
  for (const collective::DataType type : kTypes) {
    for (int i = 0; i < 3; ++i) kernels_->ComputeProducts(*stream_, 1e6, type);
    Finish();
  }
}

// Written and added, around the length of a tile, of an input that is said or read when it runs.
TEST_P(KernelsContract, TilesOfAnInputThatTheDeviceCounts) {
  const auto input = Make(sizeof(std::int64_t));
  *static_cast<std::int64_t*>(input->data()) = 6;
  auto* const counted = static_cast<std::int64_t*>(input->data());
  const TileSource said{.rank = 3, .input = 6, .param = 4};
  const TileSource read{.rank = 3, .input = -1, .input_at = counted, .param = 4};
  for (const collective::DataType type : kTypes) {
    for (const std::int64_t count : {std::int64_t{1}, kTile - 1, kTile, kTile + 1, 3 * kTile + 7}) {
      auto data = Of(type, std::vector<float>(static_cast<std::size_t>(count), 99));
      kernels_->WriteTile(*stream_, type, data->data(), count, said, /*add=*/false);
      kernels_->Increment(*stream_, counted);
      kernels_->WriteTile(*stream_, type, data->data(), count, read, /*add=*/true);
      const std::vector<float> got = Floats(type, *data, count);
      const std::int64_t number = *counted;
      for (std::int64_t i = 0; i < count; ++i) {
        const float expected =
            TileValue(TileKey(3, 6, 4), i % kTile) + TileValue(TileKey(3, number, 4), i % kTile);
        ASSERT_EQ(got[static_cast<std::size_t>(i)], expected)
            << collective::NameOf(type) << ", element " << i << " of " << count;
      }
    }
  }
  EXPECT_EQ(*counted, 6 + 4 * 5);
}

TEST_P(KernelsContract, NoTimeIsNoWork) {
  kernels_->ComputeProducts(*stream_, 0, collective::DataType::kF32);
  Finish();
}

}  // namespace lockstep::device
