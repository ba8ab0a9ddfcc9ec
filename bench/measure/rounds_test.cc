// Which cases rounds visit, how often, and why they stop, with samples of literal durations.
#include "bench/measure/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "bench/measure/countdown.h"
#include "bench/measure/testing/play.h"
#include "bench/plan/testing/doubling.h"

namespace lockstep::bench::measure {
namespace {

plan::Plan SmallPlan() {
  plan::BenchSpec spec;
  spec.time_budget_seconds = 10;
  return plan::Doubling(spec, 2, 4);
}

TEST(RoundsTest, QuietCasesStopEarlyAndNoisyOnesGoOn) {
  const plan::Plan plan = SmallPlan();
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  std::size_t played = 0, quiet_done_at = 0;
  while (!rounds.finished() && played < 1000) {
    const Round round = rounds.Next(0);
    // Only case 3 is noisy: its rounds differ by a factor, all others hardly.
    std::vector<double> base(plan.cases.size(), 10'000);
    base[3] = 10'000 * std::exp(random.Uniform());
    Play(round, base, 0.001, random, book);
    rounds.Close();
    ++played;
    if (quiet_done_at == 0 && rounds.running() == 1) quiet_done_at = played;
  }
  EXPECT_EQ(rounds.stopped_by(0), "precision");
  EXPECT_GT(quiet_done_at, 0u);
  EXPECT_LT(quiet_done_at, 60u);
  EXPECT_GT(played, 2 * quiet_done_at);
}

TEST(RoundsTest, EveryRoundVisitsAllCasesInAnotherOrder) {
  const plan::Plan plan = SmallPlan();
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  std::set<std::vector<std::uint32_t>> orders;
  for (int i = 0; i < 10; ++i) {
    std::vector<std::uint32_t> order;
    const Round round = rounds.Next(0);
    for (const Batch& batch : round.batches) order.push_back(batch.case_index);
    Play(round, std::vector<double>(plan.cases.size(), 10'000), 3, random, book);
    rounds.Close();
    EXPECT_TRUE(i > 0 || order == std::vector<std::uint32_t>({0, 1, 2, 3})) << "first by size";
    EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), plan.cases.size());
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u);
}

// Each iteration takes with what surrounds it twice the time of the call.
TEST(RoundsTest, WarmupTakesATimeAndIsNeverShort) {
  const plan::Plan plan = SmallPlan();
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  const std::vector<double> base = {250, 1e5, 9e5, 5e6};
  Play(rounds.Next(0), base, 0, random, book, /*true_costs=*/true);
  rounds.Close();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> planned(plan.cases.size());
  for (int round = 0; round < 2; ++round) {  // of light cases, and of all
    for (const Batch& batch : rounds.Next(0).batches) {
      planned[batch.case_index] = {batch.warmup, batch.iterations};
    }
  }
  // 0.7 ms of warm-up or 6 ms of its calls, and 1.5 ms of timed calls, within bounds.
  EXPECT_EQ(planned, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                         {1400, 256}, {16, 15}, {7, 2}, {3, 2}}));
}

TEST(RoundsTest, ABudgetStopsWhatDoesNotFit) {
  const plan::Plan plan = SmallPlan();
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  Play(rounds.Next(0), std::vector<double>(plan.cases.size(), 1000), 0.1, random, book);
  rounds.Close();
  // Each batch was said to cost 1 ms: 2.5 ms are enough for two of the four.
  EXPECT_EQ(rounds.Next(10 - 0.0025).batches.size(), 2u);
  EXPECT_TRUE(rounds.Next(10 - 0.0005).batches.empty());
  EXPECT_EQ(rounds.stopped_by(0), "time_budget");
}

// A sweep in virtual time, of which the batches are all that takes any.
struct Sweep {
  double elapsed = 0;  // virtual seconds
  double first_order = 0;
  double longest_order = 0;
  std::vector<std::pair<double, double>> told;  // when, and how much is left
  std::vector<std::size_t> rounds;              // of each case
};

Sweep PlaySweep(const plan::Plan& plan, const std::vector<double>& base, double noise,
                std::uint64_t seed = 1) {
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Countdown countdown;
  Random random(seed);
  Sweep sweep;
  for (;;) {
    const Round round = rounds.Next(sweep.elapsed);
    if (round.batches.empty()) break;
    const double seconds = Play(round, base, noise, random, book, /*true_costs=*/true);
    if (sweep.elapsed == 0) sweep.first_order = seconds;
    sweep.elapsed += seconds;
    sweep.longest_order = std::max(sweep.longest_order, seconds);
    rounds.Close();
    sweep.told.emplace_back(sweep.elapsed, countdown.Say(rounds.SecondsToGo(sweep.elapsed)));
  }
  rounds.StopForTime();
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    sweep.rounds.push_back(book.Current(i).round_medians_ns.size());
    EXPECT_GT(book.Current(i).complete_rows(), 0) << i;
  }
  return sweep;
}

// Sizes that take 1 to 40 ms, too noisy to stop before the time is up.
TEST(RoundsTest, GiantsGetAsManyVisitsAsOthers) {
  plan::Plan plan = plan::Doubling({}, 2, 5);
  const std::vector<double> base = {1e6, 3e6, 5e6, 20e6, 40e6};
  const Sweep sweep = PlaySweep(plan, base, 0.6);
  const auto [least, most] = std::ranges::minmax(sweep.rounds);
  EXPECT_GE(least, 8u);
  EXPECT_LE(most, 2 * least) << testing::PrintToString(sweep.rounds);
  for (plan::PlannedCase& one : plan.cases) one.model = "resnet50";
  const Sweep buckets = PlaySweep(plan, base, 0.6);
  EXPECT_GE(std::ranges::min(buckets.rounds), 3 * least);
}

TEST(RoundsTest, ASweepOfSizesIsOverInFiveSecondsUnlessVisitsWouldBeFew) {
  for (const double ns : {1e6, 3e6}) {
    const Sweep sweep =
        PlaySweep(plan::Doubling({}, 2, 5), {2 * ns, 5 * ns, 9 * ns, 45 * ns, 90 * ns}, 0.6);
    EXPECT_EQ(sweep.elapsed <= 4.5, ns == 1e6) << sweep.elapsed;
    EXPECT_GE(std::ranges::min(sweep.rounds), 5u) << testing::PrintToString(sweep.rounds);
  }
}

// 190 buckets and sequences, from 0.3 to 150 ms: 14 visits would take minutes.
plan::Plan LongPlan(std::vector<double>& base) {
  plan::Plan plan = plan::Doubling({}, 2, 1);
  plan.cases.resize(190, plan.cases[0]);
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    base.push_back(i % 24 == 23 ? 150e6 : 3e5 * (1 + static_cast<double>(i % 24)));
    plan.cases[i].operations[0].count = static_cast<std::int64_t>(base.back() * 2.8 / 4);
  }
  return plan;
}

TEST(RoundsTest, ManyLargeCasesShareAMinuteAtMost) {
  std::vector<double> base;
  const plan::Plan plan = LongPlan(base);
  const Sweep sweep = PlaySweep(plan, base, 0.3);
  EXPECT_GT(sweep.elapsed, 40);
  EXPECT_LT(sweep.elapsed, 51);
  EXPECT_LT(sweep.first_order, 2);
  EXPECT_LT(sweep.longest_order, 2);
  EXPECT_GE(*std::min_element(sweep.rounds.begin(), sweep.rounds.end()), 1u);
}

// Not even one round fits behind the first visits: nobody has two visits while another has one.
TEST(RoundsTest, WhoHasTheFewestRoundsComesFirst) {
  std::vector<double> base;
  plan::Plan plan = LongPlan(base);
  plan.time_budget_seconds = 14;
  // Neither giants nor light ones, which have rounds of their own.
  std::erase_if(plan.cases, [](const auto& one) {
    return one.operations[0].count < 2'000'000 || one.operations[0].count > 50'000'000;
  });
  std::erase_if(base, [](double ns) { return ns < 2.9e6 || ns > 1e8; });
  ASSERT_EQ(base.size(), plan.cases.size());
  const Sweep sweep = PlaySweep(plan, base, 0);
  const auto [least, most] = std::minmax_element(sweep.rounds.begin(), sweep.rounds.end());
  EXPECT_LE(*most, *least + 1);
}

// What is told may be wrong, but never grows by more than a fifth, and is over when the sweep is.
TEST(RoundsTest, WhatIsLeftIsToldMonotonously) {
  std::vector<double> many;
  const plan::Plan large = LongPlan(many);
  plan::Plan four = SmallPlan();
  four.time_budget_seconds.reset();
  plan::Plan paired = four;
  paired.paired = true;
  const std::vector<double> few = {10'000, 2e5, 3e6, 40e6};
  for (const double noise : {0.01, 0.3, 3.0}) {
    for (const Sweep& sweep : {PlaySweep(four, few, noise), PlaySweep(paired, few, noise),
                               PlaySweep(large, many, noise)}) {
      double least = std::numeric_limits<double>::infinity();
      for (const auto& [when, left] : sweep.told) {
        EXPECT_LE(left, 1.2 * least + 1e-9) << noise << " at " << when;
        least = std::min(least, left);
      }
      EXPECT_LE(sweep.told.front().second, 50);
      EXPECT_LT(sweep.told.back().second, 0.1 * sweep.elapsed + 2) << noise;
    }
  }
}

TEST(RoundsTest, TheMostASweepTakesIsKnownBefore) {
  plan::Plan plan = SmallPlan();
  EXPECT_EQ(MostSeconds(plan), 10);
  plan.cases[0].rests = true;  // a second pass
  EXPECT_EQ(MostSeconds(plan), 20);
  plan.cases[0].visits.fewest_rounds = 7;
  EXPECT_EQ(MostSeconds(plan), 100);
  plan.cases[0] = plan.cases[1];
  plan.time_budget_seconds.reset();
  EXPECT_EQ(MostSeconds(plan), 50);
  plan.iterations = 3;
  EXPECT_TRUE(std::isinf(MostSeconds(plan)));
}

// A plan whose cases are compared; each visit is said to cost 1 ms.
TEST(RoundsTest, PairedCasesShareAllRoundsAndStopTogether) {
  plan::Plan plan = SmallPlan();
  plan.paired = true;
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  std::size_t played = 0;
  while (!rounds.finished() && played < 1000) {
    const Round round = rounds.Next(0);
    EXPECT_EQ(round.batches.size(), plan.cases.size());
    // A giant among them, and one case whose rounds differ.
    std::vector<double> base = {20e6, 10'000, 10'000, 10'000 * std::exp(0.3 * random.Uniform())};
    Play(round, base, 0.02, random, book);
    rounds.Close();
    ++played;
    EXPECT_TRUE(rounds.finished() || rounds.running() == plan.cases.size());
  }
  EXPECT_EQ(rounds.stopped_by(0), "precision");
  EXPECT_EQ(rounds.stopped_by(3), "precision");
  EXPECT_GT(played, 14u);
}

TEST(RoundsTest, PairedCasesBeginNoRoundThatDoesNotFitWhole) {
  plan::Plan plan = SmallPlan();
  plan.paired = true;
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  for (int i = 0; i < 2; ++i) {
    Play(rounds.Next(0), std::vector<double>(plan.cases.size(), 1000), 0.1, random, book);
    rounds.Close();
  }
  EXPECT_EQ(rounds.Next(10 - 0.0041).batches.size(), 4u);
  EXPECT_TRUE(rounds.Next(10 - 0.0039).batches.empty());
  EXPECT_EQ(rounds.stopped_by(0), "time_budget");
}

// A first visit of 4 s makes a model; the iterations themselves take microseconds.
TEST(RoundsTest, AFirstVisitIsNoMeasureOfARound) {
  plan::Plan plan = SmallPlan();
  plan.paired = true;
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  const Round first = rounds.Next(0);
  Play(first, std::vector<double>(plan.cases.size(), 1000), 0.1, random, book);
  for (const Batch& batch : first.batches) {
    CaseBook& known = book.Current(batch.case_index);
    known.last_wall_ns = known.least_wall_ns = 4e9;
  }
  rounds.Close();
  EXPECT_EQ(rounds.Next(9).batches.size(), 4u);
}

TEST(RoundsTest, LostCasesStayLost) {
  const plan::Plan plan = SmallPlan();
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  rounds.Lose(1);
  EXPECT_EQ(rounds.Next(0).batches.size(), plan.cases.size() - 1);
  book.BeginRepetition();
  rounds.BeginRepetition();
  EXPECT_EQ(rounds.Next(0).batches.size(), plan.cases.size() - 1);
  rounds.StopAll("interrupted");
  EXPECT_EQ(rounds.stopped_by(1), "lost");
  EXPECT_EQ(rounds.stopped_by(0), "not_run");
}

}  // namespace
}  // namespace lockstep::bench::measure
