// Simulates two clocks and a network of which everything is known. The stated bound must contain
// the truth in every random world, and must not contain a wrong offset.
#include "core/stats/clock_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace lockstep::stats {
namespace {

// Two clocks and the way between them, of which everything is known. Times are ours.
struct World {
  double offset_ns = 1e9;  // theirs minus ours when ours shows 0
  double drift_ppm = 50;   // how much faster theirs is
  double wander_ppm = 0;   // amplitude of a slow swing of that
  double swing_s = 20;     // its period
  double least_way_ns = 10'000;
  double asymmetry_ns = 0;  // more on the way there
  double outliers = 0.05;   // part of the probes that are held up, by up to 5 ms

  double Theirs(double ours_ns) const {
    const double turns = 2 * 3.14159265358979 / (swing_s * 1e9);
    const double swing = wander_ppm * 1e-6 * (1 - std::cos(turns * ours_ns)) / turns;
    return offset_ns + ours_ns * (1 + drift_ppm * 1e-6) + swing;
  }
  double WayNs(Random& random) const {
    const double held_up = random.Uniform() < outliers ? 5e6 * random.Uniform() : 0;
    return least_way_ns - 20'000 * std::log(1 - random.Uniform()) + held_up;
  }
  ClockProbe Probe(double at_ns, Random& random) const {
    const double there = at_ns + asymmetry_ns + WayNs(random);
    return {at_ns, there + WayNs(random), Theirs(there)};
  }
  std::vector<ClockExchange> Exchanges(double seconds, int probes, Random& random) const {
    std::vector<ClockExchange> all;
    double at_ns = 0;
    while (at_ns < seconds * 1e9) {
      ClockExchange& exchange = all.emplace_back();
      for (int i = 0; i < probes; ++i) {
        exchange.push_back(Probe(at_ns, random));
        at_ns = exchange.back().received_ns + 1000;
      }
      at_ns += 0.25e9 * (0.5 + random.Uniform());
    }
    return all;
  }
};

World RandomWorld(Random& random) {
  World world;
  world.offset_ns = (random.Uniform() - 0.5) * 1e12;
  world.drift_ppm = (random.Uniform() - 0.5) * 400;
  // Half: where the mean over the run is one extreme of the swing, the other is twice as far.
  world.wander_ppm = random.Uniform() * 0.5 * ClockFit::kWanderPpm;
  world.swing_s = 0.1 + random.Uniform() * 2;
  world.asymmetry_ns = random.Uniform() * 100'000;
  world.outliers = random.Uniform() * 0.8;
  return world;
}

struct Truth {
  double wrong_ns = 0;  // how far the fit is from it
  double error_ns = 0;  // how far it says that it can be
};
Truth Compare(const World& world, const ClockFit& fit, double ours_ns) {
  const double theirs_ns = world.Theirs(ours_ns);
  const ClockFit::Offset offset = fit.At(theirs_ns);
  return {std::abs(theirs_ns + offset.ns - ours_ns), offset.error_ns};
}

TEST(ClockFit, TheBoundHoldsAlways) {
  constexpr std::uint64_t kSeed = 1;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  double tightest_ns = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3000; ++i) {
    const World world = RandomWorld(random);
    const double seconds = 1 + random.Uniform() * 9;
    const auto exchanges = world.Exchanges(seconds, 1 + static_cast<int>(random.Below(16)), random);
    const ClockFit fit(exchanges);
    ASSERT_TRUE(fit.consistent()) << "world " << i;
    for (int k = 0; k < 100; ++k) {
      const Truth truth = Compare(world, fit, random.Uniform() * seconds * 1e9);
      ASSERT_LE(truth.wrong_ns, truth.error_ns + 0.01) << "world " << i;
      tightest_ns = std::min(tightest_ns, truth.error_ns);
    }
  }
  EXPECT_LT(tightest_ns, 20'000);  // it is not true because it says nothing
}

TEST(ClockFit, TheLargestErrorIsTheLargest) {
  Random random(6);
  for (int i = 0; i < 200; ++i) {
    const World world = RandomWorld(random);
    const ClockFit fit(world.Exchanges(3, 2, random));
    const double from_ns = world.Theirs(1e9);
    const double to_ns = fit.anchors().back().there_ns;
    double seen_ns = 0;
    for (int k = 0; k <= 2000; ++k) {
      seen_ns = std::max(seen_ns, fit.At(from_ns + (to_ns - from_ns) * k / 2000).error_ns);
    }
    EXPECT_LE(seen_ns, fit.LargestErrorNs(from_ns) + 0.01) << "world " << i;
    EXPECT_GE(seen_ns, 0.98 * fit.LargestErrorNs(from_ns)) << "world " << i;
  }
}

// The other direction: what is farther off than the bound says is never taken for the truth.
TEST(ClockFit, AWrongOffsetIsOutside) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    World world = RandomWorld(random);
    const ClockFit fit(world.Exchanges(5, 8, random));
    const double error_ns = fit.At(world.Theirs(2.5e9)).error_ns;
    world.offset_ns += (random.Uniform() < 0.5 ? -1 : 1) * 2.1 * error_ns;
    const Truth truth = Compare(world, fit, 2.5e9);
    EXPECT_GT(truth.wrong_ns, truth.error_ns) << "world " << i;
  }
}

TEST(ClockFit, OneSecondAndFiftyPpmOverTenSeconds) {
  Random random(3);
  const World world;
  const ClockFit fit(world.Exchanges(10, 8, random));
  EXPECT_NEAR(-fit.drift() * 1e6, 50, fit.drift_error() * 1e6 + 0.01);
  EXPECT_LT(fit.drift_error() * 1e6, 5);
  for (double second = 0; second < 10; second += 0.1) {
    const Truth truth = Compare(world, fit, second * 1e9);
    EXPECT_LE(truth.wrong_ns, truth.error_ns + 0.01);
    EXPECT_LT(truth.error_ns, 20'000);
  }
}

TEST(ClockFit, TheBestProbeCountsNotTheMeanOne) {
  World world;
  world.outliers = 0.9;
  Random random(4);
  EXPECT_LT(ClockFit(world.Exchanges(5, 32, random)).At(world.Theirs(2.5e9)).error_ns, 40'000);
}

// Symmetric ways are found to a nanosecond, asymmetric ones are off by half of the difference: no
// method can tell them apart.
TEST(ClockFit, AnAsymmetricWayCostsHalfOfTheDifference) {
  const std::vector<ClockExchange> even = {{{0, 20, 1010}}, {{1e9, 1e9 + 20, 1e9 + 1010}}};
  EXPECT_NEAR(ClockFit(even).At(1010).ns, -1000, 1e-6);
  const std::vector<ClockExchange> uneven = {{{0, 20, 1020}}, {{1e9, 1e9 + 20, 1e9 + 1020}}};
  EXPECT_NEAR(ClockFit(uneven).At(1020).ns, -1010, 1e-6);
  EXPECT_NEAR(ClockFit(uneven).At(1020).error_ns, 10, 1e-6);
}

TEST(ClockFit, OneExchangeKnowsItsMomentOnly) {
  const std::vector<ClockExchange> one = {{{0, 20'000, 10'000}}};
  const ClockFit fit(one);
  EXPECT_NEAR(fit.At(10'000).error_ns, 10'000, 1e-6);
  const double second = ClockFit::kMostDriftPpm * 1e3 + ClockFit::kWanderPpm * 1e3;
  EXPECT_NEAR(fit.At(10'000 + 1e9).error_ns, 10'000 + second, 1);
}

TEST(ClockFit, WithoutAnExchangeNothingIsKnown) {
  const ClockFit fit(std::vector<ClockExchange>{});
  EXPECT_TRUE(std::isinf(fit.At(0).error_ns));
}

// Their clock is set by a millisecond in the middle: nothing is claimed of it any more.
TEST(ClockFit, AClockThatWasSetIsNoticed) {
  Random random(5);
  World world;
  std::vector<ClockExchange> exchanges = world.Exchanges(5, 8, random);
  EXPECT_TRUE(ClockFit(exchanges).consistent());
  for (std::size_t i = exchanges.size() / 2; i < exchanges.size(); ++i) {
    for (ClockProbe& probe : exchanges[i]) probe.there_ns += 1e6;
  }
  const ClockFit fit(exchanges);
  EXPECT_FALSE(fit.consistent());
  EXPECT_TRUE(std::isinf(fit.At(world.Theirs(2.5e9)).error_ns));
}

}  // namespace
}  // namespace lockstep::stats
