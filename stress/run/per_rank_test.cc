#include "stress/run/per_rank.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::stress::run {
namespace {

using ::testing::ElementsAre;

TEST(PerRank, OneEachIndexedByRank) {
  PerRank<int> values(3, 7);
  values[1] = 8;
  EXPECT_EQ(values.size(), 3);
  EXPECT_THAT(values.Map([](int value) { return value; }), ElementsAre(7, 8, 7));
  EXPECT_THAT(values.Map([](int value) { return value > 7; }), ElementsAre(false, true, false));
}

TEST(PerRank, OfRankReadsWhatHoldsOneARank) {
  std::vector<int> values = {4, 5};
  OfRank(values, 1) = 6;
  EXPECT_THAT(values, ElementsAre(4, 6));
}

}  // namespace
}  // namespace lockstep::stress::run
