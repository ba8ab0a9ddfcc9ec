// Echoes at stated times: nine of ten came back within what is told, and lost ones count.
#include "stress/links/echo_meter.h"

#include "gtest/gtest.h"

namespace lockstep::stress::links {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// So many echoes of `ms` each, one every 100 ms, the first at `at_ms`.
void Hear(EchoMeter& meter, int times, std::int64_t ms, std::int64_t at_ms) {
  for (int i = 0; i < times; ++i) {
    const std::int64_t begun = (at_ms + 100 * i) * kMillisecond;
    ASSERT_TRUE(meter.Start(begun));
    ASSERT_EQ(meter.Unsent(), begun);
    EXPECT_EQ(meter.Unsent(), std::nullopt) << "it is sent once";
    meter.Finish(begun, begun + ms * kMillisecond);
  }
}

TEST(EchoMeter, NineOfTenCameBackWithinIt) {
  EchoMeter meter;
  Hear(meter, 7, 2, 1000);
  EXPECT_EQ(meter.Seconds(2000 * kMillisecond), 0) << "too few";
  Hear(meter, 11, 2, 2000);
  Hear(meter, 1, 50, 4000);
  EXPECT_DOUBLE_EQ(meter.Seconds(5000 * kMillisecond), 0.002)
      << "one of 19 says nothing of the others";
  Hear(meter, 2, 50, 5000);
  EXPECT_DOUBLE_EQ(meter.Seconds(6000 * kMillisecond), 0.05);
}

TEST(EchoMeter, OneAtATimeAndNotTooOften) {
  EchoMeter meter;
  EXPECT_TRUE(meter.Start(1000 * kMillisecond));
  EXPECT_FALSE(meter.Start(2000 * kMillisecond)) << "one is under way";
  meter.Finish(1000 * kMillisecond, 2000 * kMillisecond);
  EXPECT_TRUE(meter.Start(2000 * kMillisecond));
  meter.Finish(2000 * kMillisecond, 2001 * kMillisecond);
  EXPECT_FALSE(meter.Start(2010 * kMillisecond));
  EXPECT_TRUE(meter.Start(2020 * kMillisecond));
}

TEST(EchoMeter, OneThatDoesNotComeBackCounts) {
  EchoMeter meter;
  Hear(meter, 8, 1, 1000);
  EXPECT_TRUE(meter.Start(5000 * kMillisecond));
  EXPECT_DOUBLE_EQ(meter.Seconds(5500 * kMillisecond), 0.5);
}

TEST(EchoMeter, AnotherLifetimeBeginsWithNothing) {
  EchoMeter meter;
  Hear(meter, 10, 1, 1000);
  EXPECT_TRUE(meter.Start(3000 * kMillisecond));
  meter.Begin();
  meter.Finish(3000 * kMillisecond, 9000 * kMillisecond);
  EXPECT_EQ(meter.Seconds(9000 * kMillisecond), 0);
  Hear(meter, 10, 1, 10000);
  EXPECT_DOUBLE_EQ(meter.Seconds(20000 * kMillisecond), 0.001);
}

}  // namespace
}  // namespace lockstep::stress::links
