// Which cases rounds visit, how often, and why they stop, with samples of literal durations.
#include "bench/measure/rounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "bench/plan/testing/doubling.h"

namespace lockstep::bench::measure {
namespace {

constexpr std::size_t kOutboxRecords = 100'000;

plan::Plan SmallPlan() {
  plan::BenchSpec spec;
  spec.time_budget_seconds = 10;
  return plan::Doubling(spec, 2, 4);
}

// Plays the workers of one round: every iteration of case c takes base[c] ns, with noise.
void Play(const Round& round, const std::vector<double>& base, double noise, Random& random,
          SampleBook& book) {
  Ticks now = 1'000'000;
  for (const Batch& batch : round.batches) {
    for (int rank = 0; rank < 2; ++rank) {
      std::string bytes;
      for (std::uint32_t i = 0; i < batch.iterations; ++i) {
        const double ns = base[batch.case_index] * (1 + noise * random.Uniform());
        const Ticks entry = now + i * 1'000'000;
        AppendTo(bytes, SampleRecord{batch.case_index, round.number, entry,
                                     entry + static_cast<Ticks>(ns)});
      }
      AppendTo(bytes, BatchRecord{batch.case_index, round.number, 1'000'000, 4, 0});
      book.Add(rank, bytes);
    }
  }
}

TEST(RoundsTest, QuietCasesStopEarlyAndNoisyOnesGoOn) {
  const plan::Plan plan = SmallPlan();
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, kOutboxRecords);
  Random random(1);
  std::size_t played = 0;
  std::size_t quiet_done_at = 0;
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
  std::set<std::vector<std::uint32_t>> orders;
  for (int i = 0; i < 10; ++i) {
    std::vector<std::uint32_t> order;
    for (const Batch& batch : rounds.Next(0).batches) order.push_back(batch.case_index);
    EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), plan.cases.size());
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u);
}

TEST(RoundsTest, FixedCountsAreExactAndInOrder) {
  plan::BenchSpec spec;
  spec.iterations = 250;
  spec.warmup = 3;
  const plan::Plan plan = plan::Doubling(spec, 2, 2);
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, 100);  // an outbox that holds less than the count
  Random random(1);
  std::vector<std::uint32_t> timed(2, 0);
  std::vector<std::uint32_t> warmup(2, 0);
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
  Play(rounds.Next(0), std::vector<double>(plan.cases.size(), 1000), 0.1, random, book);
  rounds.Close();
  EXPECT_EQ(rounds.Next(10 - 0.0041).batches.size(), 4u);
  EXPECT_TRUE(rounds.Next(10 - 0.0039).batches.empty());
  EXPECT_EQ(rounds.stopped_by(0), "time_budget");
}

TEST(RoundsTest, PairedFixedCountsTakeTurns) {
  plan::Plan plan = SmallPlan();
  plan.paired = true;
  plan.iterations = 3;
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

TEST(RoundsTest, PartsTakeTheirShareOfTheOutbox) {
  plan::Plan plan = SmallPlan();
  plan.iterations = 100;
  for (plan::PlannedCase& planned : plan.cases)
    planned.parts.resize(7);  // 68 bytes: three more records
  SampleBook book(2, plan.cases.size(), TickScale{});
  Rounds rounds(plan, book, 799);
  EXPECT_EQ(rounds.Next(0).batches.size(), 1u);
  Rounds roomier(plan, book, 800);
  EXPECT_EQ(roomier.Next(0).batches.size(), 2u);
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

TEST(SampleBookTest, RowsOfADeadRankAreMarkedAbsent) {
  SampleBook book(2, 1, TickScale{});
  std::string three;
  for (Ticks t : {100u, 200u, 300u}) AppendTo(three, SampleRecord{0, 0, t, t + 10});
  std::string one;
  AppendTo(one, SampleRecord{0, 0, 105, 120});
  AppendTo(one, WrongRecord{0, false, 0, 7, "1", "2"});
  book.Add(0, three);
  book.Add(1, one);
  const results::store::Samples samples = SamplesOf(book.Book(0, 0), TickScale{});
  ASSERT_EQ(samples.iterations(), 3);
  EXPECT_EQ(samples.exit_ns[1], 120);
  EXPECT_EQ(samples.entry_ns[3], results::store::Samples::kNoTime);
  EXPECT_EQ(book.Book(0, 0).complete_rows(), 1);
  ASSERT_EQ(book.Book(0, 0).wrong.size(), 1u);
  EXPECT_EQ(book.Book(0, 0).wrong[0].iteration, 0);
}

TEST(SampleBookTest, PartsOfADeadRankAreMarkedAbsent) {
  plan::Plan plan = SmallPlan();
  plan.cases.resize(1);
  plan.cases[0].parts = {{"a_ns", "ns"}, {"share", "", plan::RankReduction::kMean}};
  SampleBook book(2, 1, TickScale{});
  std::string two;
  for (const double value : {1.0, 2.0}) {
    AppendTo(two, SampleRecord{0, 0, 100, 110});
    AppendTo(two, PartsRecord{0, {value, value / 10}});
  }
  book.Add(0, two);
  book.Add(1, std::string_view(two).substr(0, two.size() / 2));
  const std::vector<results::store::Part> parts = PartsOf(book.Book(0, 0), plan.cases[0]);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].name, "share");
  EXPECT_EQ(parts[1].over, "mean");
  EXPECT_EQ(parts[0].values[2], 2.0);
  EXPECT_EQ(parts[1].values[1], 0.1);
  EXPECT_TRUE(std::isnan(parts[0].values[3]));
}

}  // namespace
}  // namespace lockstep::bench::measure
