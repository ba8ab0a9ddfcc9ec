// Plants changes of 10 % and 3 % in made-up nights of four kinds of machine, and counts what is
// found. The counts of false changes and delays are quoted in docs/compare.md.
#include "core/stats/change_points.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace lockstep::stats {
namespace {

constexpr std::size_t kNights = 60;
// Sanitizers look at what is done, which the first series show as well as all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kPart = 10;
#else
constexpr int kPart = 1;
#endif
constexpr int kSeries = 100 / kPart;
constexpr int kMornings = 60 / kPart;  // series that are looked at every morning

double Normal(Random& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

struct Machine {
  const char* name;
  double normal;       // deviation of a night
  double bad_nights;   // part of the nights with an outlier of 3 % and more, Pareto's tail 1.2
  double correlated;   // deviation of an autoregression of 0.7 a night
  double second_mode;  // part of the nights in a mode that is 15 % slower
  int false_max = 0;   // change points in kSeries histories without a change
};

// Logarithms of nightly medians without a change.
std::vector<double> Nights(const Machine& machine, Random& random) {
  std::vector<double> values;
  double drift = Normal(random);
  for (std::size_t i = 0; i < kNights; ++i) {
    double value = machine.normal * Normal(random) + machine.correlated * drift;
    if (random.Uniform() < machine.bad_nights) {
      value += std::log(1 + 0.03 * std::pow(1 - random.Uniform(), -1 / 1.2));
    }
    if (random.Uniform() < machine.second_mode) value += std::log(1.15);
    drift = 0.7 * drift + std::sqrt(1 - 0.49) * Normal(random);
    values.push_back(value);
  }
  return values;
}

constexpr Machine kQuiet = {"noise 1 %", 0.01, 0, 0, 0, 1};
constexpr Machine kBadNights = {"5 % bad nights", 0.008, 0.05, 0, 0, 1};
constexpr Machine kCorrelated = {"correlated", 0.007, 0.03, 0.007, 0, 5};
constexpr Machine kModes = {"two modes", 0.008, 0, 0, 0.2, 5};

struct Planted {
  std::size_t night;
  double factor;
};

// Two changes of 10 % and 3 % in either order, far enough from the ends and from each other.
std::vector<Planted> Plant(std::vector<double>& values, Random& random) {
  const double first = random.Below(2) == 0 ? 1.10 : 1.03;
  const std::vector<Planted> planted = {{10 + random.Below(11), first},
                                        {35 + random.Below(16), first == 1.03 ? 1.10 : 1.03}};
  for (const Planted& change : planted) {
    for (std::size_t i = change.night; i < values.size(); ++i) values[i] += std::log(change.factor);
  }
  return planted;
}

std::size_t Distance(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

struct Score {
  int large = 0, large_found = 0, small = 0, small_found = 0, false_points = 0;
};

void Add(const std::vector<Planted>& planted, const Segments& found, Score& score) {
  std::vector<bool> explained(found.segments.size(), false);
  for (const Planted& change : planted) {
    const bool large = change.factor > 1.05;
    std::size_t best = 0;
    for (std::size_t i = 1; i < found.segments.size(); ++i) {
      const std::size_t off = Distance(found.segments[i].first, change.night);
      if (off > 5 || explained[i]) continue;
      if (best == 0 || off < Distance(found.segments[best].first, change.night)) best = i;
    }
    if (best > 0) explained[best] = true;
    const std::size_t off = best > 0 ? Distance(found.segments[best].first, change.night) : 99;
    ++(large ? score.large : score.small);
    if (large && off <= 1) ++score.large_found;
    if (!large && off <= 5) ++score.small_found;
  }
  for (std::size_t i = 1; i < found.segments.size(); ++i) score.false_points += !explained[i];
}

// Seeds are printed with what was found: 60 nights with a change of 10 % and one of 3 %.
TEST(ChangePointsTest, PlantedChangesAreFound) {
  for (const Machine& machine : {kQuiet, kBadNights}) {
    Score score;
    for (int seed = 1; seed <= kSeries; ++seed) {
      Random random(static_cast<std::uint64_t>(seed));
      std::vector<double> values = Nights(machine, random);
      const std::vector<Planted> planted = Plant(values, random);
      Add(planted, FindChangePoints(values), score);
    }
    fmt::print("{:15} seeds 1..{}: 10 % within a night {}/{}, 3 % within five {}/{}, false {}\n",
               machine.name, kSeries, score.large_found, score.large, score.small_found,
               score.small, score.false_points);
    EXPECT_EQ(score.large_found, score.large) << machine.name;
    EXPECT_GE(score.small_found, 0.98 * score.small) << machine.name;
    EXPECT_LE(score.false_points, 1) << machine.name;
  }
}

TEST(ChangePointsTest, NothingIsFoundWhereNothingChanged) {
  for (const Machine& machine : {kQuiet, kBadNights, kCorrelated, kModes}) {
    int false_points = 0;
    for (int seed = 1; seed <= kSeries; ++seed) {
      Random random(static_cast<std::uint64_t>(seed));
      const Segments found = FindChangePoints(Nights(machine, random));
      false_points += static_cast<int>(found.segments.size()) - 1;
    }
    fmt::print("{:15} seeds 1..{}: {} false change points in {} nights\n", machine.name, kSeries,
               false_points, kSeries * kNights);
    EXPECT_LE(false_points, machine.false_max) << machine.name;
  }
}

// How many nights after the change it is reported, looking every morning.
std::size_t Delay(const std::vector<double>& values, std::size_t change) {
  for (std::size_t end = change + 1; end <= values.size(); ++end) {
    const Segments found = FindChangePoints(std::span(values).first(end));
    if (found.segments.size() > 1 && Distance(found.segments.back().first, change) <= 5) {
      return end - 1 - change;
    }
  }
  return 99;
}

TEST(ChangePointsTest, ChangesAreReportedSoon) {
  for (const double factor : {1.10, 1.03}) {
    std::vector<std::size_t> delays;
    for (int seed = 1; seed <= kMornings; ++seed) {
      Random random(static_cast<std::uint64_t>(seed));
      std::vector<double> values = Nights(kQuiet, random);
      for (std::size_t i = 40; i < values.size(); ++i) values[i] += std::log(factor);
      delays.push_back(Delay(values, 40));
    }
    std::sort(delays.begin(), delays.end());
    fmt::print("{:.2f}: nights until it is reported: median {}, worst of {} {}\n", factor,
               delays[delays.size() / 2], delays.size(), delays.back());
    EXPECT_LE(delays.back(), factor > 1.05 ? 2u : 8u);
    EXPECT_LE(delays[delays.size() * 9 / 10], factor > 1.05 ? 1u : 5u);
  }
}

TEST(ChangePointsTest, OneBadNightIsAnOutlier) {
  Random random(3);
  std::vector<double> values = Nights(kQuiet, random);
  values[20] += 0.3;
  values[59] += 0.3;  // the newest night too: tomorrow will tell
  const Segments found = FindChangePoints(values);
  EXPECT_EQ(found.segments.size(), 1u);
  EXPECT_TRUE(std::count(found.outliers.begin(), found.outliers.end(), 20u));
  EXPECT_TRUE(std::count(found.outliers.begin(), found.outliers.end(), 59u));
  EXPECT_LE(found.outliers.size(), 4u);
  EXPECT_NEAR(found.noise, 0.01, 0.004);
}

TEST(ChangePointsTest, AWeekThatWasSlowIsTwoChanges) {
  Random random(3);
  std::vector<double> values = Nights(kQuiet, random);
  for (std::size_t i = 30; i < 37; ++i) values[i] += 0.1;
  const Segments found = FindChangePoints(values);
  ASSERT_EQ(found.segments.size(), 3u);
  EXPECT_EQ(found.segments[1].first, 30u);
  EXPECT_EQ(found.segments[2].first, 37u);
  EXPECT_NEAR(found.segments[1].level - found.segments[0].level, 0.1, 0.02);
}

TEST(ChangePointsTest, FewOrEqualNightsSayNothing) {
  EXPECT_EQ(FindChangePoints(std::vector<double>{1, 1, 1, 2, 2, 2, 2}).segments.size(), 1u);
  EXPECT_EQ(FindChangePoints(std::vector<double>(30, 5.0)).segments.size(), 1u);
  EXPECT_EQ(FindChangePoints(std::vector<double>{5.0}).segments[0].level, 5.0);
}

}  // namespace
}  // namespace lockstep::stats
