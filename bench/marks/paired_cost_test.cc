// Costs of literal batches, with noise and with drift.
#include "bench/marks/paired_cost.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::bench::marks {
namespace {

// Time of a machine that drifts to twice its time in the course of the pairs, with spikes.
struct Machine {
  Random random{7};
  int works = 0;
  double Take(double ns) {
    const double drift = 1 + ++works / 800.0;
    const double noise = 1 + 0.01 * (random.Uniform() - 0.5);
    const double spike = random.Below(20) == 0 ? 3 : 1;
    return ns * drift * noise * spike;
  }
};

class FakeSide final : public PairSide {
 public:
  FakeSide(Machine& machine, double ns) : machine_(machine), ns_(ns) {}
  Result<double> Run(int times) override {
    batches.push_back(times);
    if (static_cast<int>(batches.size()) == fail_at) return SystemFailed("the GPU is gone");
    return machine_.Take(ns_);
  }
  std::vector<int> batches;
  int fail_at = 0;

 private:
  Machine& machine_;
  double ns_;
};

Cost CostOf(double with_ns, double most) {
  Machine machine;
  FakeSide without(machine, 10'000);
  FakeSide with(machine, with_ns);
  const auto times = MeasurePairs(without, with, {.pairs = 400, .batch = 8, .seed = 3});
  EXPECT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times->ratios.size(), 400u);
  EXPECT_EQ(with.batches, std::vector<int>(401, 8));
  return JudgeCost(times->ratios, most, 0.99);
}

TEST(PairedCost, IsSilentWhereThereIsNone) {
  EXPECT_EQ(CostOf(10'000, 0.02).verdict, CostVerdict::kWithin);
  EXPECT_EQ(CostOf(10'000, 0).verdict, CostVerdict::kWithin);
}

TEST(PairedCost, IsFoundDespiteOfDrift) {
  const Cost cost = CostOf(10'500, 0.02);
  EXPECT_EQ(cost.verdict, CostVerdict::kBeyond);
  EXPECT_NEAR(cost.ratio.median, 1.05, 0.01);
  EXPECT_EQ(CostOf(10'500, 0).verdict, CostVerdict::kBeyond);
}

TEST(PairedCost, OfLessThanTheLimitIsWithinItAndMeasurable) {
  EXPECT_EQ(CostOf(10'100, 0.02).verdict, CostVerdict::kWithin);
  EXPECT_EQ(CostOf(10'100, 0).verdict, CostVerdict::kBeyond);
}

TEST(PairedCost, IsUnclearWhereTheIntervalSaysNothing) {
  std::vector<double> wild;
  Random random(5);
  for (int i = 0; i < 100; ++i) wild.push_back(0.7 + 0.6 * random.Uniform());
  EXPECT_EQ(JudgeCost(wild, 0.02, 0.95).verdict, CostVerdict::kUnclear);
  EXPECT_EQ(JudgeCost(wild, 0, 0.95).verdict, CostVerdict::kUnclear);
  const std::vector<double> few = {1, 1.1, 1.01};
  EXPECT_EQ(JudgeCost(few, 0.02, 0.95).verdict, CostVerdict::kUnclear);
}

TEST(PairedCost, TheOrderChanges) {
  // Whoever comes second pays for the drift: were it always the same side, it would look slower.
  struct Ordered final : PairSide {
    Ordered(std::vector<int>& the_order, int the_number) : order(the_order), number(the_number) {}
    Result<double> Run(int) override { return order.push_back(number), 1.0; }
    std::vector<int>& order;
    int number;
  };
  std::vector<int> order;
  Ordered without(order, 0);
  Ordered with(order, 1);
  ASSERT_TRUE(MeasurePairs(without, with, {.pairs = 200, .batch = 1, .seed = 11}).ok());
  int with_first = 0;
  for (std::size_t i = 2; i < order.size(); i += 2) {
    EXPECT_NE(order[i], order[i + 1]);
    with_first += order[i];
  }
  EXPECT_GT(with_first, 60);
  EXPECT_LT(with_first, 140);
}

TEST(PairedCost, AnErrorEndsIt) {
  Machine machine;
  FakeSide without(machine, 100);
  FakeSide with(machine, 100);
  with.fail_at = 5;
  const auto times = MeasurePairs(without, with, {.pairs = 400, .batch = 8, .seed = 3});
  EXPECT_THAT(std::string(times.status().message()), testing::HasSubstr("the GPU is gone"));
}

TEST(PlanPairs, FitsTheTimeAndStaysInBounds) {
  const PairPlan usual = PlanPairs(10e3, 5, 0.005);
  EXPECT_EQ(usual.batch, 500);
  EXPECT_EQ(usual.pairs, 500);
  const PairPlan slow = PlanPairs(1e9, 5, 0.005);  // a second each
  EXPECT_EQ(slow.batch, 1);
  EXPECT_EQ(slow.pairs, 40);
  const PairPlan nothing = PlanPairs(0, 5, 0.005);
  EXPECT_EQ(nothing.batch, 500);
  EXPECT_EQ(nothing.pairs, 1000);
}

}  // namespace
}  // namespace lockstep::bench::marks
