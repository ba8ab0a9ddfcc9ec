// Figures of a literal book: what the interval and the limit are made of.
#include "bench/measure/summarize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "bench/plan/testing/doubling.h"
#include "core/stats/stats.h"

namespace lockstep::bench::measure {
namespace {

constexpr int kRounds = 20;

// Two ranks, a sample a round, of 1000 ns and up to 19 more.
CaseBook Book() {
  CaseBook book;
  book.ranks.resize(2);
  for (int round = 0; round < kRounds; ++round) {
    const auto longest = static_cast<Ticks>(1000 + round);
    for (CaseBook::RankRows& rank : book.ranks) {
      rank.entry.push_back(0);
      rank.exit.push_back(longest);
      rank.round.push_back(round);
    }
    book.round_medians_ns.push_back(static_cast<double>(longest));
  }
  return book;
}

// A cache line there and back; the floor of 8 bytes is half of it, with bandwidths without a limit.
floors::HostFloors Floors(double trip_ns) {
  floors::HostFloors host;
  host.bandwidths = {{.bytes = 8 << 10, .copy_gbps_together = 1e9, .reduce_gbps_together = 1e9}};
  host.line_round_trip_ns = host.line_round_trip_fastest_ns = trip_ns;
  return host;
}

results::store::Summary Of(const std::vector<floors::HostFloors>& floors) {
  plan::Plan plan = plan::Doubling({}, 2, 1);
  plan.drift = 0.08;
  return Summarize(Book(), plan.cases[0], plan, floors, 1, "precision");
}

TEST(Summarize, TheIntervalOfTheRoundsIsInTheOneWithDrift) {
  const results::store::Summary summary = Of({});
  const stats::MedianInterval rounds = stats::EstimateMedian(Book().round_medians_ns);
  EXPECT_EQ(summary.median_ns, rounds.median);
  EXPECT_EQ(summary.rounds_low_ns, rounds.low);
  EXPECT_EQ(summary.rounds_high_ns, rounds.high);
  EXPECT_NEAR(summary.interval_high_ns - summary.median_ns,
              std::hypot(rounds.high - rounds.median, 0.08 * rounds.median), 1e-9);
  EXPECT_TRUE(std::isnan(summary.percent_of_limit));
  EXPECT_TRUE(std::isnan(summary.limit_low));
}

TEST(Summarize, TheLimitIsOfTheFloorsBeforeAndAfter) {
  const results::store::Summary same = Of({Floors(100), Floors(100)});
  EXPECT_NEAR(same.floor_ns, 50, 1e-4);
  EXPECT_NEAR(same.percent_of_limit, 100 * 50 / same.median_ns, 1e-4);
  // The interval is that of the median: a longer median is less of the limit.
  EXPECT_NEAR(same.limit_low, 100 * 50 / same.interval_high_ns, 1e-4);
  EXPECT_NEAR(same.limit_high, 100 * 50 / same.interval_low_ns, 1e-4);

  const results::store::Summary moved = Of({Floors(100), Floors(400)});
  EXPECT_NEAR(moved.floor_ns, 100, 1e-4);
  EXPECT_LT(moved.limit_low, moved.percent_of_limit / 2);
  EXPECT_GT(moved.limit_high, moved.percent_of_limit * 2);
  EXPECT_GT(moved.limit_low, moved.percent_of_limit / 2.1);
}

// Every other round the processors are four times as far apart, and so is the time.
TEST(Summarize, WhatMovesARoundAndItsFloorIsNoPartOfTheLimit) {
  CaseBook book = Book();
  for (int round = 0; round < kRounds; ++round) {
    const double trip_ns = round % 2 == 0 ? 100 : 400;
    book.round_medians_ns[static_cast<std::size_t>(round)] = 5 * trip_ns;
    book.round_crossings.push_back({.line_round_trip_ns = trip_ns});
  }
  plan::Plan plan = plan::Doubling({}, 2, 1);
  const results::store::Summary summary =
      Summarize(book, plan.cases[0], plan, {Floors(100), Floors(400)}, 1, "precision");
  EXPECT_NEAR(summary.percent_of_limit, 10, 1e-4);
  EXPECT_NEAR(summary.limit_low, 10, 1e-4);
  EXPECT_NEAR(summary.limit_high, 10, 1e-4);
  EXPECT_GT(summary.rounds_high_ns, 2 * summary.rounds_low_ns);
  EXPECT_EQ(summary.line_least_ns, 100);
  EXPECT_EQ(summary.line_most_ns, 400);
  // Fixed iterations have blocks for rounds, which nobody looked at the machine between.
  plan.iterations = kRounds;
  EXPECT_LT(
      Summarize(book, plan.cases[0], plan, {Floors(100), Floors(400)}, 1, "iterations").limit_low,
      9);
}

// Of four iterations three find their batch, and one waits for all four.
TEST(Summarize, OfIterationsThatAreNotAlikeAVisitHasTheMean) {
  plan::Plan plan = plan::Doubling({}, 2, 1);
  plan.cases[0].visit_iterations = 4;
  plan.cases[0].parts = {{"load_ns", "ns", plan::RankReduction::kMax}};
  SampleBook book(2, 1, TickScale{});
  for (std::uint32_t round = 0; round < 5; ++round) {
    std::string bytes;
    for (const Ticks took : {970u, 10u, 10u, 10u}) {
      AppendTo(bytes, SampleRecord{0, round, 100, 100 + took});
      AppendTo(bytes, PartsRecord{0, {static_cast<double>(took)}});
    }
    for (int rank = 0; rank < 2; ++rank) book.Add(rank, bytes);
    book.CloseRound(plan);
  }
  for (const bool fixed : {false, true}) {
    if (fixed) plan.iterations = 20;
    const CaseBook& rows = book.Book(0, 0);
    const results::store::Summary summary = Summarize(rows, plan.cases[0], plan, {}, 1, "");
    EXPECT_EQ(summary.median_ns, 250) << fixed;
    EXPECT_EQ(summary.rounds, fixed ? 5 : 4) << "the first one calibrates";
    results::store::CaseRecord record;
    record.samples = SamplesOf(rows, TickScale{});
    record.parts = PartsOf(rows, plan.cases[0]);
    SummarizeParts(plan.cases[0], plan, record);
    EXPECT_EQ(record.parts[0].median, 250) << fixed;
  }
}

TEST(Summarize, AFloorThatIsNotKnownOnceIsThatOfTheOther) {
  floors::HostFloors busy = Floors(100);
  busy.bandwidths[0].copy_gbps_together = floors::kUnknownFloor;
  EXPECT_NEAR(Of({Floors(100), busy}).floor_ns, 50, 1e-4);
  EXPECT_TRUE(std::isnan(Of({busy, busy}).floor_ns));
}

}  // namespace
}  // namespace lockstep::bench::measure
