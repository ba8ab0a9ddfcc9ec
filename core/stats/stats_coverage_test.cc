// How often the interval of EstimateMedian covers the long-run median of simulated machines, and
// how wide it is. Prints the table that stats.cc quotes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/stats/stats.h"

namespace lockstep::stats {
namespace {

constexpr int kSeries = 1000;
constexpr int kStoppedSeries = 300;
constexpr std::array<std::size_t, 12> kRounds = {1, 2, 3, 5, 8, 12, 16, 24, 32, 64, 128, 200};

double Normal(Random& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

// A stationary autoregression of order 1 with unit variance.
class Autoregression {
 public:
  Autoregression(double rho, Random& random) : rho_(rho), random_(random), value_(Normal(random)) {}
  double Next() {
    const double now = value_;
    value_ = rho_ * value_ + std::sqrt(1 - rho_ * rho_) * Normal(random_);
    return now;
  }

 private:
  double rho_;
  Random& random_;
  double value_;
};

using Machine = std::function<std::vector<double>(std::size_t rounds, Random& random)>;

Machine Correlated(double rho, double noise = 0.1) {
  return [=](std::size_t rounds, Random& random) {
    Autoregression log_latency(rho, random);
    std::vector<double> values(rounds);
    for (double& value : values) value = std::exp(noise * log_latency.Next());
    return values;
  };
}

Machine HeavyTailed() {
  return [](std::size_t rounds, Random& random) {
    Autoregression log_latency(0.3, random);
    std::vector<double> values(rounds);
    for (double& value : values) {
      value = std::exp(0.1 * log_latency.Next());
      if (random.Uniform() < 0.15) value *= 1 + 0.2 * std::pow(1 - random.Uniform(), -1 / 1.2);
    }
    return values;
  };
}

Machine TwoModes(double fast_dwell, double slow_dwell) {
  return [=](std::size_t rounds, Random& random) {
    bool slow = random.Uniform() < slow_dwell / (fast_dwell + slow_dwell);
    std::vector<double> values(rounds);
    for (double& value : values) {
      value = std::exp((slow ? 0.2 : 0.0) + 0.04 * Normal(random));
      if (random.Uniform() < 1 / (slow ? slow_dwell : fast_dwell)) slow = !slow;
    }
    return values;
  };
}

Machine Drifting(double share) {
  return [=](std::size_t rounds, Random& random) {
    Autoregression drift(0.98, random);
    std::vector<double> values(rounds);
    for (double& value : values) value = std::exp(0.1 * (Normal(random) + share * drift.Next()));
    return values;
  };
}

struct Scenario {
  const char* name;
  Machine machine;
  double coverage_min;          // at every number of rounds
  double stopped_coverage_min;  // under the stop rule
};

// The last two are beyond what so few rounds can tell: a median that lies in the gap between two
// modes, and a drift that is slower than the whole series.
std::vector<Scenario> Scenarios() {
  return {
      {"independent", Correlated(0), 0.95, 0.95}, {"ar 0.3", Correlated(0.3), 0.95, 0.93},
      {"ar 0.5", Correlated(0.5), 0.94, 0.91},    {"ar 0.7", Correlated(0.7), 0.93, 0.87},
      {"tails", HeavyTailed(), 0.94, 0.92},       {"modes 8/3", TwoModes(8, 3), 0.93, 0.93},
      {"modes 3/3", TwoModes(3, 3), 0.92, 0.75},  {"modes 5/5", TwoModes(5, 5), 0.89, 0.60},
      {"drift", Drifting(0.2), 0.85, 0.90},       {"noise 40 %", Correlated(0.3, 0.4), 0.95, 0.90}};
}

struct Cell {
  double coverage = 0;
  double half_width = 0;  // median over series, relative
};

Cell Simulate(const Machine& machine, double truth, std::size_t rounds, Random& random) {
  int covered = 0;
  std::vector<double> widths;
  for (int i = 0; i < kSeries; ++i) {
    const MedianInterval interval = EstimateMedian(machine(rounds, random));
    if (interval.low <= truth && truth <= interval.high) ++covered;
    widths.push_back((interval.high - interval.low) / 2 / truth);
  }
  std::nth_element(widths.begin(), widths.begin() + kSeries / 2, widths.end());
  return {covered / static_cast<double>(kSeries), widths[kSeries / 2]};
}

struct Stopped {
  double coverage = 0;
  double rounds = 0;
};

// Looks after every round from the 8th until the half width is 5 %, at most 200 rounds.
Stopped SimulateStopRule(const Machine& machine, double truth, Random& random) {
  int covered = 0;
  std::size_t used = 0;
  for (int i = 0; i < kStoppedSeries; ++i) {
    const std::vector<double> values = machine(200, random);
    std::size_t rounds = 8;
    MedianInterval interval;
    for (;; ++rounds) {
      interval = EstimateMedian(std::span(values).first(rounds));
      if (interval.relative_half_width() <= 0.05 || rounds == values.size()) break;
    }
    if (interval.low <= truth && truth <= interval.high) ++covered;
    used += rounds;
  }
  return {covered / static_cast<double>(kStoppedSeries),
          static_cast<double>(used) / kStoppedSeries};
}

double LongRunMedian(const Machine& machine, Random& random) {
  return Median(machine(1'000'000, random));
}

TEST(CoverageTest, IntervalsCoverTheLongRunMedian) {
  std::string table = fmt::format("{:11}", "rounds");
  for (const std::size_t rounds : kRounds) table += fmt::format(" {:8}", rounds);
  table += "  stop\n";
  for (const Scenario& scenario : Scenarios()) {
    Random random(2024);
    const double truth = LongRunMedian(scenario.machine, random);
    table += fmt::format("{:11}", scenario.name);
    for (const std::size_t rounds : kRounds) {
      const Cell cell = Simulate(scenario.machine, truth, rounds, random);
      EXPECT_GE(cell.coverage, scenario.coverage_min) << scenario.name << ", " << rounds;
      table += fmt::format(" {:3.0f}/{:4.1f}", 100 * cell.coverage, 100 * cell.half_width);
    }
    const Stopped stopped = SimulateStopRule(scenario.machine, truth, random);
    EXPECT_GE(stopped.coverage, scenario.stopped_coverage_min) << scenario.name;
    table += fmt::format("  {:.0f} in {:.0f}\n", 100 * stopped.coverage, stopped.rounds);
  }
  fmt::print("{}", table);
}

// No wider than need be: for independent rounds of normal logarithm, against the half width that
// one would use who knew that, 1.96 * sqrt(pi / 2) * sigma / sqrt(n).
TEST(CoverageTest, IntervalsAreNotNeedlesslyWide) {
  Random random(7);
  struct Limit {
    std::size_t rounds;
    double ratio;
  };
  for (const Limit& limit : {Limit{32, 1.65}, Limit{64, 1.45}, Limit{200, 1.3}}) {
    const Cell cell = Simulate(Correlated(0), 1, limit.rounds, random);
    const double ideal =
        1.96 * std::sqrt(std::numbers::pi / 2) * 0.1 / std::sqrt(static_cast<double>(limit.rounds));
    EXPECT_LT(cell.half_width / ideal, limit.ratio) << limit.rounds;
  }
}

}  // namespace
}  // namespace lockstep::stats
