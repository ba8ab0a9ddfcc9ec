// Rounds of a fixed count (-n): how a count is cut into visits, and what ends it.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "bench/measure/rounds.h"
#include "bench/measure/testing/play.h"
#include "bench/plan/testing/doubling.h"

namespace lockstep::bench::measure {
namespace {

TEST(FixedRoundsTest, FixedCountsAreExactAndInOrder) {
  plan::BenchSpec spec;
  spec.iterations = 250;
  spec.warmup = 3;
  const plan::Plan plan = plan::Doubling(spec, 2, 2);
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, 100);  // an outbox that holds less than the count
  Random random(1);
  std::vector<std::uint32_t> timed(2, 0), warmup(2, 0);
  for (int i = 0; i < 20 && !rounds.finished(); ++i) {
    const Round round = rounds.Next(1e9);  // a budget does not end fixed counts
    for (const Batch& batch : round.batches) {
      timed[batch.case_index] += batch.iterations;
      warmup[batch.case_index] += batch.warmup;
    }
    Play(round, {1000, 1000}, 0.1, random, book);
    rounds.Close();
  }
  EXPECT_EQ(timed, (std::vector<std::uint32_t>{250, 250}));
  EXPECT_EQ(warmup, (std::vector<std::uint32_t>{3, 3}));
  EXPECT_EQ(rounds.stopped_by(1), "iterations");
}

// Every batch costs 1 ms. 250 iterations of 10 us each are two turns.
TEST(FixedRoundsTest, ABudgetEndsFixedCounts) {
  plan::BenchSpec spec;
  spec.iterations = 250;
  spec.time_budget_seconds = 10;
  const plan::Plan plan = plan::Doubling(spec, 2, 2);
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  const Round first = rounds.Next(0);
  ASSERT_EQ(first.batches.size(), 2u);  // cases take turns
  EXPECT_EQ(first.batches[0].iterations, 10u);
  Play(first, {10'000, 10'000}, 0.1, random, book);
  rounds.Close();
  EXPECT_EQ(rounds.Next(9.9).batches[1].iterations, 240u);
  EXPECT_TRUE(rounds.Next(9.9999).batches.empty());
  EXPECT_EQ(rounds.stopped_by(0), "cut_short");
}

TEST(FixedRoundsTest, PairedFixedCountsTakeTurns) {
  plan::BenchSpec spec;
  spec.iterations = 3;
  plan::Plan plan = plan::Doubling(spec, 2, 4);
  plan.paired = true;
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  int played = 0;
  for (; played < 20 && !rounds.finished(); ++played) {
    const Round round = rounds.Next(0);
    ASSERT_EQ(round.batches.size(), plan.cases.size());
    EXPECT_EQ(round.batches[0].iterations, 1u);
    Play(round, std::vector<double>(plan.cases.size(), 1000), 0.1, random, book);
    rounds.Close();
  }
  EXPECT_EQ(played, 3);
}

TEST(FixedRoundsTest, PartsTakeTheirShareOfTheOutbox) {
  plan::BenchSpec spec;
  spec.iterations = 100;
  plan::Plan plan = plan::Doubling(spec, 2, 4);
  for (plan::PlannedCase& planned : plan.cases)
    planned.parts.resize(7);  // 68 bytes: three more records
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, 799);
  EXPECT_EQ(rounds.Next(0).batches.size(), 1u);
  Rounds roomier(plan, book, 800);
  EXPECT_EQ(roomier.Next(0).batches.size(), 2u);
}

// Iterations that are alike only visit by visit.
TEST(FixedRoundsTest, VisitsOfAPlannedLengthStayWhole) {
  const auto visits_of = [](std::int64_t iterations, std::optional<double> budget) {
    plan::BenchSpec spec;
    spec.iterations = iterations;
    spec.time_budget_seconds = budget;
    plan::Plan plan = plan::Doubling(spec, 2, 2);
    plan.paired = true;
    for (plan::PlannedCase& planned : plan.cases) planned.visit_iterations = 8;
    SampleBook book(2, plan.cases.size(), TickScale{});
    Rounds rounds(plan, book, kOutboxRecords);
    Random random(1);
    std::vector<std::uint32_t> visits;
    while (!rounds.finished() && visits.size() < 20) {
      const Round round = rounds.Next(0);
      EXPECT_EQ(round.batches.size(), 2u) << "cases take turns";
      visits.push_back(round.batches[0].iterations);
      Play(round, {1e7, 1e7}, 0, random, book);
      rounds.Close();
    }
    return visits;
  };
  using Counts = std::vector<std::uint32_t>;
  EXPECT_EQ(visits_of(24, std::nullopt), (Counts{8, 8, 8}));
  EXPECT_EQ(visits_of(24, 10), (Counts{8, 8, 8}));
  EXPECT_EQ(visits_of(28, std::nullopt), (Counts{8, 8, 12}));
  EXPECT_EQ(visits_of(3, std::nullopt), (Counts{3}));
}

// A batch record and located errors have the other half of the outbox.
TEST(FixedRoundsTest, AVisitHasNoMoreRecordsThanTheOutboxHolds) {
  plan::BenchSpec spec;
  spec.iterations = 250;
  plan::Plan plan = plan::Doubling(spec, 2, 1);
  plan.cases[0].parts.resize(7);  // four records an iteration
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, 400);
  Random random(1);
  std::vector<std::uint32_t> visits;
  while (!rounds.finished() && visits.size() < 20) {
    const Round round = rounds.Next(0);
    visits.push_back(round.batches[0].iterations);
    Play(round, {1000}, 0.1, random, book);
    rounds.Close();
  }
  EXPECT_EQ(visits, (std::vector<std::uint32_t>{100, 100, 50}));
  SampleBook empty(2, plan.cases.size(), TickScale{});
  Rounds narrow(plan, empty, 3);  // not even one has room: then one is measured
  EXPECT_EQ(narrow.Next(0).batches[0].iterations, 1u);
}

}  // namespace
}  // namespace lockstep::bench::measure
