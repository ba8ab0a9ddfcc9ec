// The cases of a ring of messages, and what is refused.
#include "bench/sendrecv/cases.h"

#include <gtest/gtest.h>

namespace lockstep::bench::sendrecv {
namespace {

TEST(SendRecvCases, ACaseHoldsTheReceiveAndCountsItsBytesOnce) {
  Axes axes;
  axes.sizes = {.begin_bytes = 8, .end_bytes = 32};
  axes.types = {collective::DataType::kF32, collective::DataType::kF64};
  const plan::Plan plan = Expand({}, axes, 3).value();
  ASSERT_EQ(plan.cases.size(), 6u);
  EXPECT_EQ(plan.cases[2].name, "send_recv/f32/32");
  EXPECT_EQ(plan.cases[3].name, "send_recv/f64/8");
  ASSERT_EQ(plan.cases[2].operations.size(), 1u);
  EXPECT_EQ(plan.cases[2].operations[0].collective, collective::Collective::kRecv);
  EXPECT_EQ(plan.cases[2].operations[0].count, 8);
  EXPECT_EQ(plan::BytesOf(plan.cases[2], 3), 32);
  EXPECT_EQ(plan.send_buffer_bytes, 4096);
  EXPECT_EQ(plan.recv_buffer_bytes, 4096);
}

TEST(SendRecvCases, TheLastRankSendsToTheFirst) {
  EXPECT_EQ(RightOf(2, 3), 0);
  EXPECT_EQ(LeftOf(0, 3), 2);
  EXPECT_EQ(RightOf(0, 2), LeftOf(0, 2));
}

TEST(SendRecvCases, RefusesOneRankAndSizesWithoutAnElement) {
  EXPECT_FALSE(Expand({}, {}, 1).ok());
  Axes axes;
  axes.sizes = {.begin_bytes = 1, .end_bytes = 3};
  const auto refused = Expand({}, axes, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("-e 3"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::bench::sendrecv
