// Small matrices whose figures can be worked out by hand, and both ends of every scale.
#include "core/stats/skew.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace lockstep::stats {
namespace {

TEST(Skew, ByHand) {
  // Iterations x 3 ranks; rank 2 is slow twice, rank 0 once.
  const std::vector<double> times = {1, 1, 4,  //
                                     2, 1, 6,  //
                                     9, 1, 2};
  const Skew skew = MeasureSkew(times, 3);
  EXPECT_DOUBLE_EQ(skew.ranks[0].p50, 2);
  EXPECT_DOUBLE_EQ(skew.ranks[0].mean, 4);
  EXPECT_DOUBLE_EQ(skew.ranks[0].waited, 3 + 4 + 0);
  EXPECT_DOUBLE_EQ(skew.ranks[1].waited, 3 + 5 + 8);
  EXPECT_DOUBLE_EQ(skew.ranks[2].waited, 7);
  EXPECT_TRUE(std::isnan(skew.ranks[0].p99)) << "three iterations say nothing of a hundredth";
  EXPECT_EQ(skew.slowest_rank, 0) << "the lower of two equal ones";
  EXPECT_DOUBLE_EQ(skew.imbalance, 4.0 / 3.0);
  EXPECT_DOUBLE_EQ(skew.waiting_fraction, (7 + 16 + 7) / 3.0 / 19.0);
}

TEST(Skew, TheEndsOfTheScale) {
  const Skew even = MeasureSkew(std::vector<double>(400, 0.5), 4);
  EXPECT_DOUBLE_EQ(even.imbalance, 1);
  EXPECT_DOUBLE_EQ(even.waiting_fraction, 0);
  EXPECT_DOUBLE_EQ(even.ranks[3].p99, 0.5);
  std::vector<double> one(400);
  for (std::size_t i = 2; i < one.size(); i += 4) one[i] = 3;
  const Skew alone = MeasureSkew(one, 4);
  EXPECT_DOUBLE_EQ(alone.imbalance, 4);
  EXPECT_EQ(alone.slowest_rank, 2);
  EXPECT_DOUBLE_EQ(alone.waiting_fraction, 0.75);
  EXPECT_DOUBLE_EQ(alone.ranks[2].waited, 0);
  EXPECT_DOUBLE_EQ(alone.ranks[0].waited, 300);
  const Skew idle = MeasureSkew(std::vector<double>(8, 0), 4);
  EXPECT_TRUE(std::isnan(idle.imbalance));
  EXPECT_TRUE(std::isnan(idle.waiting_fraction));
}

TEST(Skew, AFactorOnOneRankShowsAsSuch) {
  Random random(17);
  constexpr int kRanks = 8;
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    for (int rank = 0; rank < kRanks; ++rank) {
      times.push_back((0.9 + 0.2 * random.Uniform()) * (rank == 5 ? 10 : 1));
    }
  }
  const Skew skew = MeasureSkew(times, kRanks);
  EXPECT_EQ(skew.slowest_rank, 5);
  EXPECT_NEAR(skew.imbalance, 10.0 / (17.0 / 8.0), 0.02);
  EXPECT_NEAR(skew.ranks[5].p50 / skew.ranks[0].p50, 10, 0.2);
  EXPECT_NEAR(skew.ranks[0].p99, 1.1, 0.01);
  EXPECT_NEAR(skew.waiting_fraction, 7.0 / 8.0 * 0.9, 0.01);
}

}  // namespace
}  // namespace lockstep::stats
