// Holds the conversions of narrow floats to a search over all their patterns, and the reference to
// results that were worked out by hand.
#include "core/collective/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/collective/float8.h"
#include "core/collective/half.h"

namespace lockstep::collective {
namespace {

// Of all values the one nearest to `value` (finite, in range), ties to the even pattern.
template <typename Word, typename ToFloat>
Word NearestBySearch(double value, ToFloat to_float) {
  Word best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (std::uint32_t bits = 0; bits <= std::numeric_limits<Word>::max(); ++bits) {
    const double candidate = to_float(static_cast<Word>(bits));
    if (!std::isfinite(candidate) || std::signbit(candidate) != std::signbit(value)) continue;
    const double distance = std::abs(candidate - value);
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) {
      best = static_cast<Word>(bits);
      best_distance = distance;
    }
  }
  return best;
}

TEST(HalfTest, EveryPatternRoundTrips) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (std::isnan(FloatFromF16(half))) {
      EXPECT_EQ(F16FromFloat(FloatFromF16(half)), half | 0x200u);
    } else {
      EXPECT_EQ(F16FromFloat(FloatFromF16(half)), half);
    }
    if (std::isnan(FloatFromBf16(half))) {
      EXPECT_EQ(Bf16FromFloat(FloatFromBf16(half)), half | 0x40u);
    } else {
      EXPECT_EQ(Bf16FromFloat(FloatFromBf16(half)), half);
    }
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  for (const float value : {1.0f, 2049.0f, 2051.0f, 0.1f, -3.14159f, 65503.9f, 6.0e-8f, 2.98e-8f,
                            -2.99e-8f, 5.9604645e-8f * 2.5f, 6.1e-5f, 257.0f, 259.0f, -0.0f}) {
    EXPECT_EQ(F16FromFloat(value), NearestBySearch<std::uint16_t>(value, FloatFromF16)) << value;
    EXPECT_EQ(Bf16FromFloat(value), NearestBySearch<std::uint16_t>(value, FloatFromBf16)) << value;
  }
  EXPECT_EQ(F16FromFloat(65519.0f), 0x7bff);  // below the halfway point to 2^16
  EXPECT_EQ(F16FromFloat(65520.0f), 0x7c00);  // infinity
  EXPECT_EQ(F16FromFloat(-1e30f), 0xfc00);
  EXPECT_EQ(Bf16FromFloat(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Float8Test, EveryPatternRoundTrips) {
  for (std::uint32_t pattern = 0; pattern < 0x100; ++pattern) {
    const auto bits = static_cast<std::uint8_t>(pattern);
    const float e4m3 = FloatFromF8E4M3(bits);
    const float e5m2 = FloatFromF8E5M2(bits);
    if (std::isnan(e4m3)) {
      EXPECT_EQ(bits & 0x7f, 0x7f);
      EXPECT_TRUE(std::isnan(FloatFromF8E4M3(F8E4M3FromFloat(e4m3))));
    } else {
      EXPECT_EQ(F8E4M3FromFloat(e4m3), bits);
    }
    if (std::isnan(e5m2)) {
      EXPECT_GT(bits & 0x7f, 0x7c);
      EXPECT_TRUE(std::isnan(FloatFromF8E5M2(F8E5M2FromFloat(e5m2))));
    } else if (!std::isinf(e5m2)) {
      EXPECT_EQ(F8E5M2FromFloat(e5m2), bits);
    }
  }
}

// The formats' tables of the OCP specification.
TEST(Float8Test, HasTheFormatsExtremes) {
  EXPECT_EQ(FloatFromF8E4M3(0x7e), 448.0f);
  EXPECT_EQ(FloatFromF8E4M3(0x08), 0x1p-6f);
  EXPECT_EQ(FloatFromF8E4M3(0x01), 0x1p-9f);
  EXPECT_EQ(FloatFromF8E4M3(0xb8), -1.0f);
  EXPECT_EQ(FloatFromF8E5M2(0x7b), 57344.0f);
  EXPECT_EQ(FloatFromF8E5M2(0x04), 0x1p-14f);
  EXPECT_EQ(FloatFromF8E5M2(0x01), 0x1p-16f);
  EXPECT_EQ(FloatFromF8E5M2(0xbc), -1.0f);
  EXPECT_TRUE(std::isinf(FloatFromF8E5M2(0x7c)));
  // Too large becomes the largest, as CUDA saturates.
  for (const float large : {449.0f, 1e6f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(F8E4M3FromFloat(large), 0x7e) << large;
    EXPECT_EQ(F8E4M3FromFloat(-large), 0xfe) << large;
    EXPECT_EQ(F8E5M2FromFloat(large * 200), 0x7b) << large;
  }
}

// Every number of half the distance of their values, and its neighbours.
TEST(Float8Test, RoundsToNearestEven) {
  const auto check = [](float value) {
    EXPECT_EQ(F8E4M3FromFloat(value), NearestBySearch<std::uint8_t>(value, FloatFromF8E4M3))
        << value;
    EXPECT_EQ(F8E5M2FromFloat(value), NearestBySearch<std::uint8_t>(value, FloatFromF8E5M2))
        << value;
  };
  for (std::uint32_t pattern = 0; pattern < 0x7e; ++pattern) {
    const float below = FloatFromF8E4M3(static_cast<std::uint8_t>(pattern));
    const float above = FloatFromF8E4M3(static_cast<std::uint8_t>(pattern + 1));
    const float middle = (below + above) / 2;
    for (const float value :
         {below, middle, std::nextafter(middle, below), std::nextafter(middle, above), -middle}) {
      check(value);
    }
  }
  for (std::uint32_t pattern = 0; pattern < 0x7b; ++pattern) {
    const float below = FloatFromF8E5M2(static_cast<std::uint8_t>(pattern));
    const float middle = (below + FloatFromF8E5M2(static_cast<std::uint8_t>(pattern + 1))) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      EXPECT_EQ(F8E5M2FromFloat(value), NearestBySearch<std::uint8_t>(value, FloatFromF8E5M2))
          << value;
    }
  }
}

// Four ranks send {rank + 1, 10 * (rank + 1)} and so on for `count` elements.
std::vector<std::vector<std::int32_t>> Sends(int count) {
  std::vector<std::vector<std::int32_t>> sends(4);
  for (int rank = 0; rank < 4; ++rank) {
    for (int e = 0; e < count; ++e) {
      sends[static_cast<std::size_t>(rank)].push_back((rank + 1) + 10 * e);
    }
  }
  return sends;
}

std::vector<std::int32_t> Received(const Operation& operation, int send_count, int recv_count,
                                   int rank) {
  const auto sends = Sends(send_count);
  std::vector<const void*> pointers;
  for (const auto& send : sends) pointers.push_back(send.data());
  std::vector<std::int32_t> recv(static_cast<std::size_t>(recv_count), -1);
  ReferenceResult(operation, 4, pointers, rank, recv.data());
  return recv;
}

using Values = std::vector<std::int32_t>;

TEST(ReferenceTest, GivesWhatEachCollectiveDefines) {
  Operation op{.type = DataType::kI32, .count = 2};
  EXPECT_EQ(Received(op, 2, 2, 0), (Values{10, 50}));
  op.reduction = Reduction::kProd;
  EXPECT_EQ(Received(op, 2, 2, 3), (Values{24, 11 * 12 * 13 * 14}));
  op.reduction = Reduction::kMin;
  EXPECT_EQ(Received(op, 2, 2, 1), (Values{1, 11}));
  op.reduction = Reduction::kMax;
  EXPECT_EQ(Received(op, 2, 2, 1), (Values{4, 14}));
  op = {.collective = Collective::kReduce, .type = DataType::kI32, .count = 1, .root = 2};
  EXPECT_EQ(Received(op, 1, 1, 2), (Values{10}));
  EXPECT_EQ(Received(op, 1, 1, 1), (Values{-1}));
  op = {.collective = Collective::kReduceScatter, .type = DataType::kI32, .count = 1};
  EXPECT_EQ(Received(op, 4, 1, 3), (Values{130}));
  op = {.collective = Collective::kAllGather, .type = DataType::kI32, .count = 2};
  EXPECT_EQ(Received(op, 2, 8, 0), (Values{1, 11, 2, 12, 3, 13, 4, 14}));
  op = {.collective = Collective::kBroadcast, .type = DataType::kI32, .count = 2, .root = 1};
  EXPECT_EQ(Received(op, 2, 2, 3), (Values{2, 12}));
  op = {.collective = Collective::kRecv, .type = DataType::kI32, .count = 1, .root = 3};
  EXPECT_EQ(Received(op, 1, 1, 0), (Values{4}));
  op = {.collective = Collective::kBarrier};
  EXPECT_EQ(Received(op, 1, 1, 0), (Values{-1}));
}

TEST(ReferenceTest, RoundsEveryStepInTheType) {
  const std::uint16_t big = Bf16FromFloat(256), one = Bf16FromFloat(1);
  std::uint16_t sum = 0;
  const Operation op{.type = DataType::kBf16, .count = 1};
  ReferenceResult(op, 3, {&big, &one, &one}, 0, &sum);
  EXPECT_EQ(FloatFromBf16(sum), 256);  // 257 ties to even, twice
  ReferenceResult(op, 3, {&one, &one, &big}, 0, &sum);
  EXPECT_EQ(FloatFromBf16(sum), 258);
}

}  // namespace
}  // namespace lockstep::collective
