// Made-up fleets of several sizes, with and without a slow machine, and how often it is found or
// another one is accused.
#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "gtest/gtest.h"
#include "results/compare/trend.h"

namespace lockstep::results::compare {
namespace {

constexpr double kPeerMin = 0.05;
constexpr int kCases = 12;

double Normal(Random& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

// A fleet whose machines differ by `machine` (standard deviation of all cases together) and each
// case by `noise`; the first machine is `slow` in its last `slow_cases`.
struct Fleet {
  int machines = 8;
  double machine = 0.01, noise = 0.01;
  double slow = 0;
  int slow_cases = 0;
  std::size_t launches = 4;  // that a level is known from
};

std::vector<Series> Levels(const Fleet& fleet, Random& random) {
  std::vector<Series> all;
  for (int m = 0; m < fleet.machines; ++m) {
    const double own = fleet.machine * Normal(random);
    for (int c = 0; c < kCases; ++c) {
      Series& series = all.emplace_back();
      series.machine = fmt::format("node{:03}", m);
      series.program = "bench_allreduce";
      series.name = fmt::format("all_reduce/f32/sum/{}", 8 << c);
      series.backend = "nccl";
      series.ranks = 8;
      series.nights = {{"2026-11-01T01:00:00Z", 1, fleet.launches}};
      stats::LevelSegment segment;
      segment.level = std::log(1e3 * (1 + c)) + own + fleet.noise * Normal(random);
      if (m == 0 && c >= kCases - fleet.slow_cases) segment.level += std::log1p(fleet.slow);
      series.segments.segments.push_back(segment);
    }
  }
  return all;
}

struct Counts {
  int found = 0;   // the first machine is slow
  int others = 0;  // fleets in which another one is
};

Counts Count(const Fleet& fleet, int fleets) {
  Random random(11);
  Counts counts;
  for (int i = 0; i < fleets; ++i) {
    bool others = false;
    for (const Peer& peer : ComparePeers(Levels(fleet, random), kPeerMin)) {
      if (!peer.slow) continue;
      EXPECT_FALSE(peer.why.empty());
      (peer.machine == "node000" ? counts.found : counts.others) +=
          peer.machine == "node000" || !others ? 1 : 0;
      others = others || peer.machine != "node000";
    }
  }
  return counts;
}

TEST(PeersTest, FleetsWithoutASlowMachineHaveNone) {
  for (const double noise : {0.005, 0.01, 0.02}) {
    for (const int machines : {3, 4, 8, 24}) {
      const Counts counts = Count({machines, 0.01, noise}, 100);
      printf("%3d machines, %.1f %%: %d of 100 fleets have a slow one\n", machines, 100 * noise,
             counts.found + counts.others);
      EXPECT_LE(counts.found + counts.others, 2) << machines << " " << noise;
    }
  }
}

TEST(PeersTest, ASlowMachineIsFound) {
  for (const int machines : {4, 8, 24}) {
    const Counts counts = Count({machines, 0.005, 0.01, 0.12, kCases}, 100);
    EXPECT_GE(counts.found, 98) << machines;
    EXPECT_LE(counts.others, 2) << machines;
  }
}

// A link that lost half of its lanes: large messages take longer, the others do not.
TEST(PeersTest, AMachineThatIsSlowInLargeMessagesOnlyIsFound) {
  for (const int machines : {4, 8, 24}) {
    const Counts counts = Count({machines, 0.005, 0.01, 0.30, 3}, 100);
    EXPECT_GE(counts.found, 98) << machines;
    EXPECT_LE(counts.others, 2) << machines;
  }
  Random random(3);
  const std::vector<Peer> peers = ComparePeers(Levels({8, 0.005, 0.005, 0.30, 3}, random), 0.05);
  EXPECT_EQ(peers.front().machine, "node000");
  EXPECT_TRUE(peers.front().slow);
  EXPECT_LT(peers.front().excess, 0.05);
  EXPECT_EQ(peers.front().cases_slow, 3u);
  EXPECT_NE(peers.front().why.find("in 3 of 12 cases; most in all_reduce/f32/sum/"),
            std::string::npos)
      << peers.front().why;
}

TEST(PeersTest, OneCaseAloneIsNoSlowMachine) {
  EXPECT_LE(Count({8, 0.005, 0.01, 0.30, 1}, 200).found, 1);
}

TEST(PeersTest, OneLaunchOfAMachineSaysNothing) {
  EXPECT_EQ(Count({8, 0.005, 0.01, 0.50, kCases, 4}, 10).found, 10);
  EXPECT_EQ(Count({8, 0.005, 0.01, 0.50, kCases, 3}, 10).found, 0);
}

TEST(PeersTest, WhatIsNoLongerMeasuredSaysNothing) {
  Random random(7);
  std::vector<Series> fleet = Levels({8, 0.005, 0.01, 0.50, kCases}, random);
  for (Series& series : fleet) {
    if (series.machine == "node000") series.no_time = "no time in the newest 7 nights";
  }
  for (const Peer& peer : ComparePeers(fleet, kPeerMin)) EXPECT_NE(peer.machine, "node000");
}

TEST(PeersTest, TwoMachinesSayNothing) {
  Random random(5);
  EXPECT_TRUE(ComparePeers(Levels({2, 0, 0, 0.5, kCases}, random), kPeerMin).empty());
}

}  // namespace
}  // namespace lockstep::results::compare
