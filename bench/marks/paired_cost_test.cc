// Costs of literal batches, with noise and with drift.
#include "bench/marks/paired_cost.h"

#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/stats/stats.h"
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

PairedTimes TimesOf(double with_ns) {
  Machine machine;
  FakeSide without(machine, 10'000);
  FakeSide with(machine, with_ns);
  auto times = MeasurePairs(without, with, {.pairs = 400, .batch = 8, .seed = 3});
  EXPECT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times->added_ns.size(), 400u);
  EXPECT_EQ(times->ratios.size(), 400u);
  EXPECT_EQ(with.batches, std::vector<int>(401, 8));
  return std::move(times).value();
}

// The interval of what is added.
stats::MedianInterval AddedBy(double with_ns) {
  return stats::EstimateMedianOfIndependent(TimesOf(with_ns).added_ns, 0.99);
}

TEST(PairedCost, IsNoneWhereThereIsNone) {
  const stats::MedianInterval added = AddedBy(10'000);
  EXPECT_LT(added.low, 0);
  EXPECT_GT(added.high, 0);
}

// The machine becomes twice as slow meanwhile, and so does what is added.
TEST(PairedCost, IsFoundDespiteOfDrift) {
  const stats::MedianInterval added = AddedBy(10'500);
  EXPECT_GT(added.low, 500);
  EXPECT_LT(added.high, 1000);
  const stats::MedianInterval ratio = stats::EstimateMedian(TimesOf(10'500).ratios, 0.99);
  EXPECT_NEAR(ratio.median, 1.05, 0.01);
  EXPECT_GT(ratio.low, 1);
}

TEST(PairedCost, WorkThatTakesNoTimeIsAnError) {
  Machine machine;
  FakeSide without(machine, 0);
  FakeSide with(machine, 100);
  const auto times = MeasurePairs(without, with, {.pairs = 4, .batch = 8, .seed = 3});
  EXPECT_THAT(std::string(times.status().message()), testing::HasSubstr("no pair took any time"));
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
