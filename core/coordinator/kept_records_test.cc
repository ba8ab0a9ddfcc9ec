// What is kept when more comes than is kept.
#include "core/coordinator/kept_records.h"

#include <gtest/gtest.h>

namespace lockstep::coordinator {
namespace {

TEST(KeptRecords, BehindAGapNothingIsKept) {
  KeptRecords kept(10);
  kept.Add("12345");
  kept.Add("67890");
  EXPECT_FALSE(kept.cut());
  kept.Add("");
  EXPECT_FALSE(kept.cut());
  kept.Add("a");
  EXPECT_TRUE(kept.cut());
  EXPECT_EQ(kept.Take(), "1234567890");

  KeptRecords gap(10);
  gap.Add("12345");
  gap.Add("678901");
  gap.Add("6");
  EXPECT_TRUE(gap.cut());
  EXPECT_EQ(gap.Take(), "12345");
}

}  // namespace
}  // namespace lockstep::coordinator
