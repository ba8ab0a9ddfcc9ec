// Tails of the rank test against counting every arrangement and against printed tables. The
// coverage of intervals is simulated with fixed seeds.
#include "core/stats/two_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"

namespace lockstep::stats {
namespace {

using Values = std::vector<double>;

// The definition: all ways of dealing the ranks to the two sides.
double CountedTail(std::size_t m, std::size_t n, double u) {
  std::vector<bool> is_candidate(m + n, false);
  std::fill(is_candidate.begin() + static_cast<std::ptrdiff_t>(m), is_candidate.end(), true);
  double ways = 0, as_high = 0;
  do {
    std::size_t base_below = 0, pairs = 0;
    for (const bool candidate : is_candidate) {
      if (candidate)
        pairs += base_below;
      else
        ++base_below;
    }
    ++ways;
    if (static_cast<double>(pairs) >= u) ++as_high;
  } while (std::next_permutation(is_candidate.begin(), is_candidate.end()));
  return as_high / ways;
}

TEST(RankSumTest, TailsAreThoseOfTheDefinition) {
  for (const auto& [m, n] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {3, 3}, {5, 4}, {2, 7}, {6, 6}}) {
    for (std::size_t u = 0; u <= m * n; ++u) {
      const auto pairs = static_cast<double>(u);
      EXPECT_NEAR(RankSumTail(m, n, pairs), CountedTail(m, n, pairs), 1e-12)
          << m << ", " << n << ", " << u;
    }
    EXPECT_NEAR(SmallestTail(m, n), RankSumTail(m, n, static_cast<double>(m * n)), 1e-12);
  }
}

// The critical value of the tables: 23 of 100 pairs, two-sided 5 %, for 10 and 10 values.
TEST(RankSumTest, TenAgainstTenIsTheTables) {
  EXPECT_LE(RankSumTail(10, 10, 77), 0.025);
  EXPECT_GT(RankSumTail(10, 10, 76), 0.025);
}

TEST(RankSumTest, TheNormalTailMeetsTheExactOne) {
  EXPECT_NEAR(RankSumTail(30, 30, 550), RankSumTail(30, 31, 550 * 31 / 30.0), 0.005);
  EXPECT_LT(RankSumTail(40, 40, 1600), 1e-12);
  EXPECT_NEAR(RankSumTail(40, 40, 800), 0.5, 0.01);
}

TEST(RankSumTest, TiesCountAgainstADifference) {
  EXPECT_EQ(RankSumTail(5, 5, 24.5), RankSumTail(5, 5, 24));
  const Values same(6, 1.0);
  const Shift shift = EstimateShift(same, same);
  EXPECT_EQ(shift.estimate, 0);
  EXPECT_GT(shift.p_above, 0.4);
  EXPECT_GT(shift.p_below, 0.4);
  EXPECT_FALSE(shift.clearly_above || shift.clearly_below);
}

TEST(ShiftTest, EstimateAndIntervalAreOrderStatisticsOfTheDifferences) {
  const Values base = {0, 1, 2, 3};
  const Values candidate = {10, 11, 12, 13};
  const Shift shift = EstimateShift(base, candidate);
  EXPECT_EQ(shift.estimate, 10);
  // P(U >= 16) = 1/70 <= 2.5 % < P(U >= 15) = 2/70: the extremes of the differences.
  EXPECT_EQ(shift.low, 7);
  EXPECT_EQ(shift.high, 13);
  EXPECT_NEAR(shift.p_above, 1.0 / 70, 1e-12);
  EXPECT_NEAR(shift.p_below, 1, 1e-12);
  EXPECT_TRUE(shift.clearly_above);
  const Shift back = EstimateShift(candidate, base);
  EXPECT_EQ(back.estimate, -10);
  EXPECT_NEAR(back.p_below, 1.0 / 70, 1e-12);
  EXPECT_TRUE(back.clearly_below);
}

TEST(ShiftTest, ThreeASideHaveNoInterval) {
  const Shift shift = EstimateShift(Values{1, 2, 3}, Values{4, 5, 6});
  EXPECT_EQ(shift.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(shift.high, std::numeric_limits<double>::infinity());
}

TEST(ShiftTest, AnAllowanceMustBeExceeded) {
  const Values base = {0.00, 0.01, 0.02, 0.03, 0.04};
  Values candidate = base;
  for (double& value : candidate) value += 0.05;
  EXPECT_LT(EstimateShift(base, candidate).p_above, 0.01);
  const Shift allowed = EstimateShift(base, candidate, 0.95, 0.05);
  EXPECT_GT(allowed.p_above, 0.3);
  EXPECT_LT(allowed.low, 0);
  for (double& value : candidate) value += 0.05;
  EXPECT_LT(EstimateShift(base, candidate, 0.95, 0.05).p_above, 0.01);
}

// 95 % intervals contain the shift in at least 95 % of sets, for noise of any shape.
TEST(ShiftTest, IntervalsCover) {
  constexpr int kSets = 4000;
  for (const std::size_t n : {std::size_t{4}, std::size_t{6}, std::size_t{10}}) {
    Random random(7);
    int covered = 0;
    for (int set = 0; set < kSets; ++set) {
      Values base(n), candidate(n);
      for (double& value : base) value = std::pow(random.Uniform(), -0.8);
      for (double& value : candidate) value = std::pow(random.Uniform(), -0.8) + 0.3;
      const Shift shift = EstimateShift(base, candidate);
      if (shift.low <= 0.3 && 0.3 <= shift.high) ++covered;
    }
    EXPECT_GE(covered, 0.94 * kSets) << n;
  }
}

// The example of Benjamini and Hochberg 1995, section 3.2: four of 15 are taken at q = 0.05.
TEST(AdjustTest, IsTheExampleOfThePaper) {
  const Values p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const Values adjusted = AdjustForMany(p);
  EXPECT_EQ(std::count_if(adjusted.begin(), adjusted.end(), [](double q) { return q <= 0.05; }), 4);
  EXPECT_NEAR(adjusted[0], 0.0015, 1e-12);
  EXPECT_TRUE(std::is_sorted(adjusted.begin(), adjusted.end()));
  EXPECT_EQ(AdjustForMany(Values{0.04}), Values{0.04});
  EXPECT_TRUE(AdjustForMany(Values{}).empty());
}

}  // namespace
}  // namespace lockstep::stats
