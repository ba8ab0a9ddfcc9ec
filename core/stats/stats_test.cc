// Quantiles against sorting, and median intervals against what correlation, steps and scale must do
// to them.
#include "core/stats/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"

namespace lockstep::stats {
namespace {

TEST(QuantileTest, InterpolatesLikeType7) {
  const std::vector<double> values = {40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(Quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 40);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.5), 25);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.25), 17.5);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.9), 37);
  EXPECT_DOUBLE_EQ(Quantile(std::vector<double>{7}, 0.3), 7);
  EXPECT_DOUBLE_EQ(Median(std::vector<double>{3, 1, 2}), 2);
}

TEST(QuantileTest, AgreesWithSorting) {
  Random random(3);
  for (std::size_t n = 1; n < 60; ++n) {
    std::vector<double> values(n);
    for (double& value : values) value = std::floor(10 * random.Uniform());
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (const double p : {0.0, 0.1, 0.5, 0.73, 0.99, 1.0}) {
      const double h = p * static_cast<double>(n - 1);
      const auto k = static_cast<std::size_t>(h);
      const double next = sorted[std::min(k + 1, n - 1)];
      const double expected = sorted[k] + (h - static_cast<double>(k)) * (next - sorted[k]);
      EXPECT_DOUBLE_EQ(Quantile(values, p), expected);
    }
  }
}

TEST(QuantileTest, SaysWhichQuantilesTheCountSupports) {
  EXPECT_TRUE(QuantileIsSupported(100, 0.99));
  EXPECT_FALSE(QuantileIsSupported(99, 0.99));
  EXPECT_TRUE(QuantileIsSupported(1000, 0.999));
  EXPECT_TRUE(QuantileIsSupported(10, 0.9));
  EXPECT_TRUE(QuantileIsSupported(2, 0.5));
  EXPECT_FALSE(QuantileIsSupported(1, 0.5));
  EXPECT_FALSE(QuantileIsSupported(1000000, 1.0));
}

TEST(EstimateMedianTest, FewRoundsGiveAWideInterval) {
  double wider = std::numeric_limits<double>::infinity();
  for (const std::size_t n : {1u, 2u, 5u, 8u}) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = i % 2 == 0 ? 10 : 11;
    const MedianInterval interval = EstimateMedian(values);
    EXPECT_GT(interval.low, 0);
    EXPECT_GT(interval.relative_half_width(), 0.15) << n;
    EXPECT_LT(interval.relative_half_width(), wider) << n;
    wider = interval.relative_half_width();
  }
}

// Times are positive, and factors of them are what can be guessed.
TEST(EstimateMedianTest, OfFewRoundsThatAreNotPositiveNothingIsKnown) {
  const MedianInterval interval = EstimateMedian(std::vector<double>{-1, 0, 1});
  EXPECT_TRUE(std::isinf(interval.low) && std::isinf(interval.high));
}

// Uncorrelated signs: the ranks of the sign test, widened by the allowance for few rounds only.
TEST(EstimateMedianTest, IndependentRounds) {
  std::vector<double> values(100);
  Random random(11);
  for (std::size_t i = 0; i < 100; ++i) values[i] = static_cast<double>(i + 1);
  random.Shuffle(values);
  const MedianInterval interval = EstimateMedian(values);
  EXPECT_DOUBLE_EQ(interval.median, 50.5);
  EXPECT_GE(interval.correlation_rounds, 1);
  EXPECT_LT(interval.correlation_rounds, 2);
  EXPECT_NEAR(interval.high - 50.5, 50.5 - interval.low, 1e-9);
  EXPECT_GT(interval.high - 50.5, 9.8);  // 1.96 sqrt(100) / 2
  EXPECT_LT(interval.high - 50.5, 16);
  EXPECT_LT(EstimateMedian(values, 0.5).high, interval.high);
  EXPECT_GT(EstimateMedian(values, 0.99).high, interval.high);
}

// The same values, each once or each for six rounds: six times fewer independent ones.
TEST(EstimateMedianTest, WidensWithCorrelation) {
  Random random(12);
  double free_width = 0, sticky_width = 0;
  for (int series = 0; series < 50; ++series) {
    std::vector<double> values(240), held(240);
    for (std::size_t i = 0; i < 240; ++i) values[i] = 100 + random.Uniform();
    for (std::size_t i = 0; i < 240; ++i) held[i] = values[i / 6];
    const MedianInterval sticky = EstimateMedian(held);
    EXPECT_GT(sticky.correlation_rounds, 3);
    free_width += EstimateMedian(values).relative_half_width();
    sticky_width += sticky.relative_half_width();
  }
  EXPECT_GT(sticky_width, 2.2 * free_width);  // sqrt(6) = 2.4, and a larger t
}

TEST(EstimateMedianTest, AStepIsNotAPreciseMedian) {
  std::vector<double> values(60, 10.0);
  for (std::size_t i = 30; i < 60; ++i) values[i] = 13.0 + 0.001 * static_cast<double>(i);
  EXPECT_GT(EstimateMedian(values).relative_half_width(), 0.1);
}

TEST(EstimateMedianTest, DoesNotDependOnTheScale) {
  Random random(13);
  std::vector<double> values(50), mapped(50);
  for (std::size_t i = 0; i < 50; ++i) {
    values[i] = 1 + random.Uniform();
    mapped[i] = 8 * values[i];
  }
  EXPECT_DOUBLE_EQ(EstimateMedian(mapped).low, 8 * EstimateMedian(values).low);
  EXPECT_DOUBLE_EQ(EstimateMedian(mapped).relative_half_width(),
                   EstimateMedian(values).relative_half_width());
}

TEST(EstimateMedianTest, EqualValuesAreExact) {
  const MedianInterval interval = EstimateMedian(std::vector<double>(40, 5.0));
  EXPECT_DOUBLE_EQ(interval.low, 5);
  EXPECT_DOUBLE_EQ(interval.high, 5);
  EXPECT_DOUBLE_EQ(interval.relative_half_width(), 0);
}

// Between the order statistics that Hettmansperger and Sheather's weights give for n = 8 and 10.
TEST(EstimateMedianOfIndependentTest, LiesBetweenOrderStatistics) {
  const std::vector<double> eight = {5, 2, 8, 1, 7, 3, 6, 4};
  const MedianInterval of_eight = EstimateMedianOfIndependent(eight);
  EXPECT_DOUBLE_EQ(of_eight.median, 4.5);
  EXPECT_NEAR(of_eight.low, 1.93564, 1e-5);
  EXPECT_NEAR(of_eight.high, 9 - 1.93564, 1e-5);
  const std::vector<double> ten = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_NEAR(EstimateMedianOfIndependent(ten).low, 2.65766, 1e-5);
  EXPECT_GT(EstimateMedianOfIndependent(ten, 0.99).high, EstimateMedianOfIndependent(ten).high);
}

TEST(EstimateMedianOfIndependentTest, FewValuesHaveAWideInterval) {
  for (const std::size_t n : {1u, 2u, 5u}) {
    const MedianInterval interval = EstimateMedianOfIndependent(std::vector<double>(n, 10.0));
    EXPECT_LT(interval.low, 9) << n;
    EXPECT_GT(interval.high, 11) << n;
  }
  EXPECT_TRUE(std::isinf(EstimateMedianOfIndependent(std::vector<double>{-1, 1}).low));
}

// Fixed seeds: launches that differ by 10 %, and launches of two modes.
TEST(EstimateMedianOfIndependentTest, CoversTheLongRunMedian) {
  Random random(14);
  for (const std::size_t n : {6u, 8u, 12u, 30u, 2000u}) {
    const int series = n > 100 ? 200 : 2000;
    int covered = 0;
    for (int i = 0; i < series; ++i) {
      std::vector<double> values(n);
      for (double& value : values) {
        const double place = random.Uniform();
        value = place < 0.7 ? 1 + 0.1 * place : 2 + place;
      }
      const MedianInterval interval = EstimateMedianOfIndependent(values);
      covered += interval.low <= 1.05 && 1.05 <= interval.high ? 1 : 0;
    }
    EXPECT_GT(covered, 0.93 * series) << n;
    EXPECT_LT(covered, 0.985 * series) << n;
  }
}

}  // namespace
}  // namespace lockstep::stats
