// Holds the tables of types and collectives to their enumerations, and the bandwidth factors to
// figures of nccl-tests. The sizes are written out here, not computed.
#include "core/collective/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/collective/data_type.h"

namespace lockstep::collective {
namespace {

using testing::HasSubstr;

TEST(DataTypeTest, NamesAndSizesRoundTrip) {
  ASSERT_EQ(AllDataTypes().size(), kDataTypeCount);
  constexpr std::array<std::int64_t, kDataTypeCount> kBytes = {2, 2, 4, 8, 1, 4, 8, 1, 1, 1};
  for (const DataType type : AllDataTypes()) {
    EXPECT_EQ(ParseDataType("-d", NameOf(type)).value(), type);
    EXPECT_EQ(SizeOf(type), kBytes.at(static_cast<std::size_t>(type))) << NameOf(type);
  }
  EXPECT_EQ(ParseDataType("-d", "half").value(), DataType::kF16);
  EXPECT_EQ(ParseDataType("-d", "bfloat16").value(), DataType::kBf16);
  EXPECT_EQ(ParseDataType("-d", "float").value(), DataType::kF32);
  EXPECT_EQ(ParseDataType("-d", "uint8").value(), DataType::kU8);
  const Status bad = ParseDataType("-d", "f8").status();
  EXPECT_EQ(bad.code(), StatusCode::kInvalidInput);
  EXPECT_EQ(bad.message(),
            "-d: 'f8' is not a data type; choose one of: f16 bf16 f32 f64 i8 i32 i64 u8 f8e4m3 "
            "f8e5m2");
  EXPECT_EQ(NcclNameOf(DataType::kF16), "half");
  EXPECT_EQ(TorchNameOf(DataType::kF8E4M3), "Float8_e4m3fn");
}

TEST(CollectiveTest, NamesRoundTrip) {
  for (int i = 0; i < 8; ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(InfoOf(collective).collective, collective);
    EXPECT_EQ(ParseCollective("--op", NameOf(collective)).value(), collective);
  }
  for (const Reduction r : {Reduction::kSum, Reduction::kProd, Reduction::kMin, Reduction::kMax}) {
    EXPECT_EQ(ParseReduction("-o", NameOf(r)).value(), r);
  }
  EXPECT_THAT(ParseReduction("-o", "avg").status().message(), HasSubstr("sum prod min max"));
  EXPECT_THAT(ParseCollective("--op", "alltoall").status().message(), HasSubstr("reduce_scatter"));
}

TEST(CollectiveTest, BytesPerRow) {
  struct Row {
    Collective collective;
    std::int64_t send, recv;
  };
  for (const Row& row : {Row{Collective::kAllReduce, 40, 40}, Row{Collective::kBroadcast, 40, 40},
                         Row{Collective::kBarrier, 0, 0}, Row{Collective::kAllGather, 40, 160},
                         Row{Collective::kReduceScatter, 160, 40}, Row{Collective::kReduce, 40, 40},
                         Row{Collective::kSend, 40, 0}, Row{Collective::kRecv, 0, 40}}) {
    const Operation operation{.collective = row.collective,
                              .count = row.collective == Collective::kBarrier ? 0 : 10};
    EXPECT_EQ(SendBytes(operation, 4), row.send) << Describe(operation);
    EXPECT_EQ(RecvBytes(operation, 4), row.recv) << Describe(operation);
    EXPECT_EQ(MessageBytes(operation, 4), std::max(row.send, row.recv));
  }
}

TEST(CollectiveTest, BusBandwidthFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kAllReduce, 2), 1);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kBroadcast, 8), 1);
  EXPECT_DOUBLE_EQ(BusBandwidthFactor(Collective::kReduce, 8), 1);
}

TEST(CollectiveTest, Describes) {
  EXPECT_EQ(Describe({.count = 1024}), "all_reduce f32 x 1024 sum");
  EXPECT_EQ(Describe({.collective = Collective::kBroadcast, .type = DataType::kU8, .count = 16}),
            "broadcast u8 x 16 root 0");
  EXPECT_EQ(Describe({.collective = Collective::kReduce,
                      .type = DataType::kBf16,
                      .reduction = Reduction::kMax,
                      .count = 3,
                      .root = 2}),
            "reduce bf16 x 3 max root 2");
  EXPECT_EQ(Describe({.collective = Collective::kSend, .count = 1, .root = 5}),
            "send f32 x 1 peer 5");
  EXPECT_EQ(Describe({.collective = Collective::kBarrier}), "barrier");
}

}  // namespace
}  // namespace lockstep::collective
