// The formulas of floors, and that what is measured of this host is plausible.
#include "bench/floors/floors.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/process_stat.h"
#include "gtest/gtest.h"

namespace lockstep::bench::floors {
namespace {

constexpr double kLongSeconds = 60;  // of a busy machine

// Copies 10 GB/s and reduces 5 GB/s in memory, ten times that in a cache; a line takes 200 ns.
HostFloors RoundFigures() {
  HostFloors floors;
  floors.bandwidths = {{.bytes = 64 << 10,
                        .copy_gbps_alone = 100,
                        .copy_gbps_together = 100,
                        .reduce_gbps_alone = 50,
                        .reduce_gbps_together = 50},
                       {.bytes = 32 << 20,
                        .copy_gbps_alone = 20,
                        .copy_gbps_together = 10,
                        .reduce_gbps_alone = 10,
                        .reduce_gbps_together = 5}};
  floors.line_round_trip_ns = 300;
  floors.line_round_trip_fastest_ns = 200;
  return floors;
}

constexpr std::int64_t kLarge = 100'000'000;

TEST(FloorNs, FollowsTheDocumentedFormula) {
  const HostFloors floors = RoundFigures();
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kBarrier, 0, 2), 100);
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kBarrier, 0, 1000), 100);
  // The receiver copies alone: 1e8 bytes at 20 bytes a ns.
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kBroadcast, kLarge, 2), 100 + 5e6);
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kSend, kLarge, 2), 100 + 5e6);
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kAllGather, kLarge, 4),
                   100 + 0.75e8 / 10);
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kReduceScatter, kLarge, 2),
                   100 + 0.5e8 / 5);
  // Two ranks: half reduced at 5, half copied at 10.
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kAllReduce, kLarge, 2), 100 + 1e7 + 5e6);
  // Four ranks: a quarter from 4 inputs in one pass is 5/12 of the measured loop.
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kAllReduce, kLarge, 4),
                   100 + kLarge * 5. / 12 / 5 + 0.75e8 / 10);
}

TEST(FloorNs, DataMustCrossBetweenProcessors) {
  HostFloors floors = RoundFigures();
  const Crossing crossing{.line_round_trip_ns = 400, .handover_gbps = {50, 20, 4, 3, 2, 1}};
  floors = With(crossing, floors);
  EXPECT_EQ(floors.line_round_trip_fastest_ns, 400);
  using collective::Collective;
  // Half of the message to each of two ranks, at 1 byte a ns; of all_reduce twice that.
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kAllGather, kLarge, 2), 200 + 5e7);
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kReduceScatter, kLarge, 2), 200 + 5e7);
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kAllReduce, kLarge, 2), 200 + 1e8);
  // 1 MiB: arrays of half as much crossed at 4.
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kAllReduce, 1 << 20, 2), 200 + (1 << 20) / 4.0);
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kAllReduce, 16 << 20, 2), 200 + (16 << 20) / 2.0);
  // One rank receives it all: how fast it does alone was not measured.
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kBroadcast, kLarge, 2), 200 + 5e6);
  floors = With(Crossing{}, floors);
  EXPECT_DOUBLE_EQ(FloorNs(floors, Collective::kAllReduce, kLarge, 2), 200 + 1e7 + 5e6);
}

TEST(FloorNs, EverythingReducedByEveryRankWhenCopyingIsSlow) {
  HostFloors floors = RoundFigures();
  floors.bandwidths[1].copy_gbps_together = 1;
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kAllReduce, kLarge, 2), 100 + 1e8 / 5);
}

TEST(FloorNs, AMessageThatFitsTheCacheIsGrantedTheCache) {
  const HostFloors floors = RoundFigures();
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kBroadcast, 100'000, 2), 100 + 1000);
  // Arrays of half the message are not yet as large as those measured in memory.
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kBroadcast, (64 << 20) - 2, 2),
                   100 + ((64 << 20) - 2) / 100.);
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kBroadcast, 64 << 20, 2),
                   100 + (64 << 20) / 20.);
  EXPECT_DOUBLE_EQ(FloorNs(floors, collective::Collective::kAllReduce, 0, 2), 100);
}

TEST(FloorNs, ALargerMessageNeverHasASmallerFloor) {
  HostFloors noisy = RoundFigures();
  noisy.bandwidths[1].copy_gbps_alone = 400;  // looks faster than the cache
  double before = 0;
  for (std::int64_t bytes = 8; bytes < 1 << 30; bytes += bytes / 7 + 1) {
    const double floor = FloorNs(noisy, collective::Collective::kBroadcast, bytes, 2);
    EXPECT_GE(floor, before) << bytes;
    before = floor;
  }
}

TEST(FloorNs, WhatIsNotKnownIsNotInvented) {
  EXPECT_TRUE(std::isnan(FloorNs(HostFloors{}, collective::Collective::kAllReduce, 8, 2)));
  EXPECT_TRUE(std::isnan(FloorNs(RoundFigures(), collective::Collective::kAllReduce, 8, 1)));
  HostFloors no_trip = RoundFigures();
  no_trip.line_round_trip_fastest_ns = kUnknownFloor;
  EXPECT_TRUE(std::isnan(FloorNs(no_trip, collective::Collective::kBarrier, 0, 2)));
  EXPECT_DOUBLE_EQ(FloorNs(no_trip, collective::Collective::kBroadcast, kLarge, 2), 5e6);
  HostFloors no_reduce = RoundFigures();
  for (Bandwidth& b : no_reduce.bandwidths) b.reduce_gbps_together = kUnknownFloor;
  EXPECT_TRUE(std::isnan(FloorNs(no_reduce, collective::Collective::kAllReduce, kLarge, 2)));
}

TEST(MeasureFloors, FiguresAreThoseOfAMachine) {
  const std::vector<int> cpus = AllowedCpus();
  ASSERT_FALSE(cpus.empty());
  std::vector<std::vector<int>> ranks = {{cpus.front()}};
  if (cpus.size() > 1) ranks.push_back({cpus[1]});
  HostFloors floors = MeasureFloors(ranks, kLongSeconds);
  // On a busy machine both processors are rarely ours at once.
  const Deadline limit = Deadline::AfterSeconds(kLongSeconds);
  while (ranks.size() > 1 && std::isnan(floors.line_round_trip_ns) && !limit.Passed()) {
    floors.line_round_trip_fastest_ns = floors.line_round_trip_ns =
        MeasureFloors(ranks, 0.1).line_round_trip_ns;
  }
  ASSERT_EQ(floors.bandwidths.size(), 5u);
  for (const Bandwidth& b : floors.bandwidths) {
    for (const double gbps :
         {b.copy_gbps_alone, b.copy_gbps_together, b.reduce_gbps_alone, b.reduce_gbps_together}) {
      EXPECT_GT(gbps, 0) << b.bytes;
      EXPECT_TRUE(std::isfinite(gbps)) << b.bytes;
    }
  }
  if (cpus.size() > 1) {
    EXPECT_GT(floors.line_round_trip_ns, 0);
    EXPECT_EQ(floors.line_round_trip_ns, floors.line_round_trip_fastest_ns);  // one pair
  } else {
    EXPECT_TRUE(std::isnan(floors.line_round_trip_ns));
  }
}

TEST(MeasureFloors, RanksThatShareAProcessorPlayNoPingPong) {
  const std::vector<int> cpus = AllowedCpus();
  ASSERT_FALSE(cpus.empty());
  const HostFloors floors = MeasureFloors({{cpus.front()}, {cpus.front()}, {cpus.front()}}, 0.2);
  EXPECT_TRUE(std::isnan(floors.line_round_trip_ns));
}

TEST(MeasureFloors, TheBudgetIsKeptAndWhatIsMissingIsUnknown) {
  const std::vector<int> cpus = AllowedCpus();
  ASSERT_FALSE(cpus.empty());
  const HostFloors floors = MeasureFloors({{cpus.front()}, {cpus.back()}}, 0);
  for (const auto& [name, value] : FloorFigures(floors)) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(MeasureFloors, NoProcessorNoFigures) {
  EXPECT_TRUE(MeasureFloors({}, 1).bandwidths.empty());
  EXPECT_TRUE(MeasureFloors({{}}, 1).bandwidths.empty());
  EXPECT_TRUE(MeasureFloors({{-1}, {0}}, 1).bandwidths.empty());
}

TEST(FloorFigures, WhatCrossedIsOfTheLargestArraysThatDid) {
  HostFloors floors = RoundFigures();
  const auto crossed = [&floors] {
    const auto figures = FloorFigures(floors);
    return std::ranges::find(figures, "handover_gbps", &decltype(figures)::value_type::first)
        ->second;
  };
  EXPECT_TRUE(std::isnan(crossed()));
  floors.crossing.handover_gbps[0] = 50;
  floors.crossing.handover_gbps[2] = 4;
  EXPECT_EQ(crossed(), 4);
}

TEST(FloorFigures, NameTheLargestAndTheCachedArrays) {
  const auto figures = FloorFigures(RoundFigures());
  ASSERT_EQ(figures.size(), 12u);
  EXPECT_EQ(figures[0].first, "copy_gbps_alone");
  EXPECT_EQ(figures[0].second, 20);
  EXPECT_EQ(figures[7].first, "reduce_gbps_together_in_cache");
  EXPECT_EQ(figures[7].second, 50);
  EXPECT_EQ(figures[10].first, "line_round_trip_ns");
  EXPECT_EQ(figures[10].second, 300);
}

}  // namespace
}  // namespace lockstep::bench::floors
