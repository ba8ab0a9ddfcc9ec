// How often comparisons of simulated machines are wrong, and how often they find what changed.
// Prints the tables that docs/compare.md quotes; seeds are in them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/stats/stats.h"
#include "results/compare/compare.h"

namespace lockstep::results::compare {
namespace {

constexpr int kComparisons = 1000;
constexpr std::uint64_t kSeed = 2026;

double Normal(Random& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

double Pareto(Random& random) { return std::pow(1 - random.Uniform(), -1 / 1.2); }

// Logarithms of the medians of so many launches, in order of time, of a machine without a change.
using Noise = std::function<std::vector<double>(std::size_t launches, Random& random)>;

Noise Quiet(double deviation) {
  return [=](std::size_t launches, Random& random) {
    std::vector<double> values(launches);
    for (double& value : values) value = deviation * Normal(random);
    return values;
  };
}

// Of 40 rounds 15 % take a hit of 20 % and more; and 2 % of the launches as a whole one of 10 %.
std::vector<double> HeavyTails(std::size_t launches, Random& random) {
  std::vector<double> values(launches);
  for (double& value : values) {
    std::vector<double> rounds(40);
    for (double& round : rounds) {
      round = 0.05 * Normal(random);
      if (random.Uniform() < 0.15) round += std::log(1 + 0.2 * Pareto(random));
    }
    value = stats::Median(rounds) + 0.01 * Normal(random);
    if (random.Uniform() < 0.02) value += std::log(1 + 0.1 * Pareto(random));
  }
  return values;
}

// An autoregression of 0.95 a launch with deviation 3 %, and 1.2 % a launch of its own.
std::vector<double> Drift(std::size_t launches, Random& random) {
  std::vector<double> values(launches);
  double drift = Normal(random);
  for (double& value : values) {
    value = 0.03 * drift + 0.012 * Normal(random);
    drift = 0.95 * drift + std::sqrt(1 - 0.95 * 0.95) * Normal(random);
  }
  return values;
}

// Rounds stay 8 in one mode and 3 in another that is 22 % slower, on average.
std::vector<double> TwoModesOfRounds(std::size_t launches, Random& random) {
  std::vector<double> values(launches);
  for (double& value : values) {
    bool slow = random.Uniform() < 3.0 / 11;
    std::vector<double> rounds(64);
    for (double& round : rounds) {
      round = (slow ? 0.2 : 0.0) + 0.04 * Normal(random);
      if (random.Uniform() < 1 / (slow ? 3.0 : 8.0)) slow = !slow;
    }
    value = stats::Median(rounds) + 0.01 * Normal(random);
  }
  return values;
}

// This part of the launches is 22 % slower as a whole, as when its ranks are placed badly.
Noise TwoModesOfLaunches(double slow) {
  return [=](std::size_t launches, Random& random) {
    std::vector<double> values(launches);
    for (double& value : values) {
      value = (random.Uniform() < slow ? 0.2 : 0.0) + 0.01 * Normal(random);
    }
    return values;
  };
}

// Real launches: a column of testdata/launches.txt from a random place on, in order of time.
Noise Real(std::size_t column) {
  std::vector<double> history;
  std::ifstream file("results/compare/testdata/launches.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream cells(line);
    double ns = 0;
    for (std::size_t i = 0; i <= column; ++i) cells >> ns;
    history.push_back(std::log(ns));
  }
  return [history](std::size_t launches, Random& random) {
    const std::size_t begin = random.Below(history.size());
    std::vector<double> values(launches);
    for (std::size_t i = 0; i < launches; ++i) values[i] = history[(begin + i) % history.size()];
    return values;
  };
}

struct Machine {
  const char* name;
  Noise noise;
  double power_min;  // of finding 5 % with 10 launches a side
};

// The last ones are beyond ten launches: a change of 5 % among modes that are 22 % apart, or 370 %.
std::vector<Machine> Machines() {
  return {{"1 % a launch", Quiet(0.01), 1.0},
          {"2 % a launch", Quiet(0.02), 0.95},
          {"heavy tails", HeavyTails, 0.95},
          {"drift", Drift, 0.95},
          {"two modes of rounds", TwoModesOfRounds, 0.95},
          {"a tenth 22 % slower", TwoModesOfLaunches(0.1), 0.7},
          {"half 22 % slower", TwoModesOfLaunches(0.5), 0.1},
          {"real, 8 B", Real(0), 0},
          {"real, 64 B", Real(1), 0},
          {"real, 32 KiB", Real(4), 0.2},
          {"real, 2 MiB", Real(6), 0}};
}

// The documentation tells these figures: the nth row of docs/compare.md that begins with
// the machine's name, within the freedom that another arithmetic library has.
void ExpectDocumented(const std::string& name, int nth, const std::vector<int>& figures) {
  constexpr int kFreedom = 15;
  std::ifstream file("docs/compare.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| " + name + " |") || nth-- > 0) continue;
    std::istringstream cells(line.substr(name.size() + 4));
    char bar = 0;
    for (const int figure : figures) {
      int documented = -1;
      cells >> documented >> bar;
      EXPECT_NEAR(documented, figure, kFreedom) << line;
    }
    return;
  }
  ADD_FAILURE() << "docs/compare.md has no row " << nth << " for " << name;
}

std::string Minute(std::size_t i) {
  return fmt::format("2026-11-21T{:02}:{:02}:00Z", i / 60, i % 60);
}

struct Sets {
  std::vector<Launch> base, candidate;
};

enum class Order { kInterleaved, kOneAfterTheOther };

bool IsCandidate(std::size_t i, std::size_t launches_a_side, Order order) {
  if (order == Order::kOneAfterTheOther) return i >= launches_a_side;
  return (i % 4 == 1) || (i % 4 == 2);  // base, candidate, candidate, base
}

// Cases whose candidate takes `factors[case]` times as long; two ranks that differ by noise of 1 %.
Sets Simulate(const Noise& noise, std::size_t launches, const std::vector<double>& factors,
              Random& random, Order order = Order::kInterleaved) {
  std::vector<std::vector<double>> logs;
  for (std::size_t c = 0; c < factors.size(); ++c) logs.push_back(noise(2 * launches, random));
  Sets sets;
  for (std::size_t i = 0; i < 2 * launches; ++i) {
    bool candidate = IsCandidate(i, launches, order);
    if (order == Order::kInterleaved && i + 1 == 2 * launches) {
      candidate = sets.candidate.size() < launches;  // an odd number leaves half a block
    }
    Launch launch;
    launch.id = fmt::format("{:08x}", i);
    launch.program = "bench_allreduce";
    launch.started_at = Minute(i);
    launch.verdict = verdict::Verdict::kPass;
    launch.outcome = "pass";
    for (std::size_t c = 0; c < factors.size(); ++c) {
      CaseFigures figures;
      figures.name = fmt::format("case/{}", c);
      figures.backend = "mpi";
      figures.ranks = 2;
      figures.median_ns = 1e6 * std::exp(logs[c][i]) * (candidate ? factors[c] : 1);
      figures.verdict = verdict::Verdict::kPass;
      figures.outcome = "pass";
      const double excess = 0.01 * figures.median_ns * Normal(random);
      figures.by_rank = {{"leaves later", {excess, -excess}}};
      launch.cases.push_back(std::move(figures));
    }
    (candidate ? sets.candidate : sets.base).push_back(std::move(launch));
  }
  return sets;
}

struct Rates {
  int slower = 0, faster = 0, same = 0, any_slower = 0;
};

Rates RatesOf(const Noise& noise, std::size_t launches, const std::vector<double>& factors,
              int comparisons, Order order = Order::kInterleaved, double drift = kDriftDefault) {
  Random random(kSeed);
  CompareOptions options;
  options.drift = drift;
  Rates rates;
  for (int i = 0; i < comparisons; ++i) {
    const Sets sets = Simulate(noise, launches, factors, random, order);
    const LaunchComparison comparison = Compare(sets.base, sets.candidate, options);
    rates.slower += static_cast<int>(comparison.Count(Change::kSlower));
    rates.faster += static_cast<int>(comparison.Count(Change::kFaster));
    rates.same += static_cast<int>(comparison.Count(Change::kSame));
    rates.any_slower += comparison.Count(Change::kSlower) > 0 ? 1 : 0;
  }
  return rates;
}

TEST(SimulationTest, WithoutAChangeOnePercentAtMostIsCalledSlower) {
  fmt::print("no change, seed {}: slower / faster / same of {} comparisons\n{:20}", kSeed,
             kComparisons, "launches a side");
  for (const std::size_t launches : {4, 5, 10, 20}) fmt::print(" {:>13}", launches);
  fmt::print("\n");
  for (const Machine& machine : Machines()) {
    fmt::print("{:20}", machine.name);
    std::vector<int> slower;
    for (const std::size_t launches : {4, 5, 10, 20}) {
      const Rates rates = RatesOf(machine.noise, launches, {1.0}, kComparisons);
      fmt::print(" {:>3} /{:>3} /{:>4}", rates.slower, rates.faster, rates.same);
      EXPECT_LE(rates.slower, kComparisons / 100) << machine.name << ", " << launches;
      EXPECT_LE(rates.faster, kComparisons / 100) << machine.name << ", " << launches;
      slower.push_back(rates.slower);
    }
    fmt::print("\n");
    ExpectDocumented(machine.name, 0, slower);
  }
}

TEST(SimulationTest, FivePercentIsFoundWithTenLaunches) {
  fmt::print("5 % slower, seed {}: slower of {} comparisons; the last column: 10 % slower\n{:20}",
             kSeed, kComparisons, "launches a side");
  for (const std::size_t launches : {4, 5, 7, 10, 20}) fmt::print(" {:>6}", launches);
  fmt::print("     10\n");
  for (const Machine& machine : Machines()) {
    fmt::print("{:20}", machine.name);
    std::vector<int> slower;
    for (const std::size_t launches : {4, 5, 7, 10, 20}) {
      const Rates rates = RatesOf(machine.noise, launches, {1.05}, kComparisons);
      fmt::print(" {:>6}", rates.slower);
      slower.push_back(rates.slower);
      EXPECT_LE(rates.faster, kComparisons / 100) << machine.name;
      if (launches == 10) {
        EXPECT_GE(rates.slower, machine.power_min * kComparisons) << machine.name;
      }
    }
    fmt::print(" {:>6}\n", RatesOf(machine.noise, 10, {1.10}, kComparisons).slower);
    ExpectDocumented(machine.name, 1, slower);
  }
}

// Three launches a side decide nothing, however large the change; four decide a clear one.
TEST(SimulationTest, FewLaunchesDecideClearChangesOnly) {
  EXPECT_EQ(RatesOf(Quiet(0.01), 3, {3.0}, 100).slower, 0);
  EXPECT_GE(RatesOf(Quiet(0.01), 4, {1.5}, 100).slower, 99);
  EXPECT_LE(RatesOf(Quiet(0.02), 4, {1.05}, 100).slower, 60);
}

// A machine that drifts while one side is measured after the other: only the allowance helps.
TEST(SimulationTest, DriftBetweenTheSidesIsNoChange) {
  for (const std::size_t launches : {5, 10}) {
    const Rates allowed = RatesOf(Drift, launches, {1.0}, kComparisons, Order::kOneAfterTheOther);
    const Rates denied = RatesOf(Drift, launches, {1.0}, kComparisons, Order::kOneAfterTheOther, 0);
    fmt::print(
        "drift, one side after the other, {} launches: {} slower, {} with --launch-drift=0\n",
        launches, allowed.slower, denied.slower);
    EXPECT_LE(allowed.slower, kComparisons / 100);
    EXPECT_GT(denied.slower, kComparisons / 50);  // so it is the allowance that helps
    EXPECT_GE(RatesOf(Drift, launches, {1.25}, 100, Order::kOneAfterTheOther).slower, 90);
  }
}

// Fifty cases: the correction keeps a whole comparison from crying wolf, and finds what changed.
TEST(SimulationTest, ManyCasesAreCorrectedFor) {
  constexpr int kWhole = 300;
  std::vector<double> factors(50, 1.0);
  const Rates nothing = RatesOf(Quiet(0.015), 10, factors, kWhole);
  std::fill_n(factors.begin(), 3, 1.05);
  const Rates three = RatesOf(Quiet(0.015), 10, factors, kWhole);
  fmt::print(
      "50 cases: {} of {} comparisons say slower without a change; of 3 cases that are 5 % "
      "slower {:.1f} % are found\n",
      nothing.any_slower, kWhole, 100.0 * three.slower / (3 * kWhole));
  EXPECT_LE(nothing.any_slower, kWhole / 50);
  EXPECT_GE(three.slower, 0.95 * 3 * kWhole);
  EXPECT_LE(three.slower, 1.02 * 3 * kWhole);
}

// 16 ranks of a case that scatters by 20 % a launch: how often is a rank named, with heavy tails in
// each rank's own excess, when none changed, and when rank 3 leaves 5 % later?
TEST(SimulationTest, RanksAreNamedWhenTheyChangedOnly) {
  constexpr int kRanks = 16, kSets = 300;
  int named_wrongly = 0, found = 0;
  Random random(kSeed);
  for (const double late : {0.0, 0.05}) {
    for (int set = 0; set < kSets; ++set) {
      Sets sets = Simulate(Quiet(0.2), 10, {1.0}, random);
      for (std::vector<Launch>* side : {&sets.base, &sets.candidate}) {
        for (Launch& launch : *side) {
          CaseFigures& figures = launch.cases.front();
          std::vector<double> excess(kRanks);
          for (double& one : excess) {
            one = 0.008 * Normal(random) + (random.Below(30) == 0 ? 0.02 * Pareto(random) : 0);
          }
          if (side == &sets.candidate) excess[3] += late;
          for (double& one : excess) one *= figures.median_ns;
          figures.by_rank = {{"leaves later", excess}};
        }
      }
      const LaunchComparison comparison = Compare(sets.base, sets.candidate, {});
      bool is_found = false, is_wrong = false;
      for (const RankChange& rank : comparison.cases.front().slower_ranks) {
        (late > 0 && rank.rank == 3 ? is_found : is_wrong) = true;
      }
      named_wrongly += is_wrong ? 1 : 0;
      found += is_found ? 1 : 0;
    }
  }
  fmt::print(
      "16 ranks, 10 launches: a rank that did not change is named in {} of {}; one that "
      "leaves 5 % later is found in {} of {}\n",
      named_wrongly, 2 * kSets, found, kSets);
  EXPECT_LE(named_wrongly, 2 * kSets / 100);
  EXPECT_GE(found, 0.85 * kSets);
}

}  // namespace
}  // namespace lockstep::results::compare
