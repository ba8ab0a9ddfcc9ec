// Skew and transfer of literal samples, on one clock and on several.
#include "bench/measure/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "bench/measure/sample_book.h"
#include "bench/plan/testing/doubling.h"
#include "core/coordinator/host_clocks.h"

namespace lockstep::bench::measure {
namespace {

results::store::Samples Rows(int ranks, std::vector<std::int64_t> entry,
                             std::vector<std::int64_t> exit) {
  results::store::Samples samples;
  samples.ranks = ranks;
  samples.round.resize(entry.size() / static_cast<std::size_t>(ranks));
  samples.entry_ns = std::move(entry);
  samples.exit_ns = std::move(exit);
  return samples;
}

TEST(Arrivals, SkewAndTransferAreApart) {
  // Rank 1 comes 500, 700 and 600 late; all leave 100, 200 and 300 after it came.
  const results::store::Samples samples =
      Rows(2, {0, 500, 1000, 1700, 2000, 2600}, {550, 600, 1900, 1850, 2900, 2800});
  const auto arrivals = ArrivalsOf(samples, 40, false);
  ASSERT_TRUE(arrivals.has_value());
  EXPECT_EQ(arrivals->skew_ns, 600);
  EXPECT_EQ(arrivals->transfer_ns, 200);
  EXPECT_EQ(arrivals->clock_error_ns, 40);
  EXPECT_EQ(arrivals->last_rank, 1);
  EXPECT_EQ(arrivals->last_share, 1);
}

// In one of the four iterations of a visit rank 1 comes 1000 late, in the others rank 0 comes 2
// late.
TEST(Arrivals, OfIterationsThatAreNotAlikeAVisitHasTheMean) {
  results::store::Samples samples = Rows(2, {}, {});
  for (std::int64_t i = 0; i < 8; ++i) {
    const bool waits = i % 4 == 0;
    const std::int64_t at = 10'000 * i;
    const std::int64_t left = at + (waits ? 1400 : 2);
    samples.round.push_back(static_cast<std::int32_t>(i / 4));
    samples.entry_ns.insert(samples.entry_ns.end(),
                            {at + (waits ? 0 : 2), at + (waits ? 1000 : 0)});
    samples.exit_ns.insert(samples.exit_ns.end(), {left, left});
  }
  EXPECT_EQ(ArrivalsOf(samples, 0, /*by_mean=*/false)->skew_ns, 2);
  const auto arrivals = ArrivalsOf(samples, 0, /*by_mean=*/true);
  EXPECT_EQ(arrivals->skew_ns, 251.5);
  EXPECT_EQ(arrivals->transfer_ns, 100);
  EXPECT_EQ(arrivals->last_rank, 1);
  EXPECT_EQ(arrivals->last_share, 1);
}

TEST(Arrivals, IterationsThatARankDidNotCompleteDoNotCount) {
  const results::store::Samples samples = Rows(2, {0, 10, 100, results::store::Samples::kNoTime},
                                               {50, 60, 200, results::store::Samples::kNoTime});
  EXPECT_EQ(ArrivalsOf(samples, 0, false)->skew_ns, 10);
  EXPECT_FALSE(ArrivalsOf(Rows(2, {0, -1}, {5, -1}), 0, false).has_value());
  EXPECT_FALSE(ArrivalsOf(Rows(1, {0}, {5}), 0, false).has_value());
}

// Rank 1's host counts twice as fast, from another beginning: two of its ticks are a nanosecond.
TEST(Arrivals, StampsOfAnotherHostAreMoved) {
  coordinator::HostClocks clocks;
  clocks.Add(0, "a", "boot a");
  clocks.Add(1, "b", "boot b");
  clocks.SetOurs({1000, 0, 0, 10, 1.0});
  const auto there = [](Ticks ours) { return 5'000'000 + 2 * (ours - 1000); };
  for (const Ticks ours : {Ticks{1000}, Ticks{1'000'001'000}}) {
    clocks.AddExchange(1, {{ours - 100, ours + 100, there(ours)}}, {there(ours), 0, 0, 10, 0.5});
  }
  SampleBook book(2, 1, TickScale{1000, 1.0, 0});
  book.SetRates({clocks.NsPerTick(0), clocks.NsPerTick(1)});
  for (Ticks at = 2000; at < 900'000'000; at += 100'000'000) {
    for (int rank = 0; rank < 2; ++rank) {
      const Ticks entry = at + (rank == 1 ? 70'000 : 0);
      std::string bytes;
      AppendTo(bytes, rank == 0 ? SampleRecord{0, 0, entry, at + 90'000}
                                : SampleRecord{0, 0, there(entry), there(at + 90'000)});
      book.Add(rank, bytes);
    }
  }
  book.CloseRound(plan::Doubling({}, 2, 1));
  EXPECT_EQ(book.Book(0, 0).first_visit_ns, 90'000);  // not rank 1's 40'000 ticks, nor twice
  book.PutOnOneClock(clocks);
  const CaseBook& rows = book.Book(0, 0);
  EXPECT_GT(rows.clock_error_ns, 100);
  EXPECT_LT(rows.clock_error_ns, 10'000);
  const auto arrivals = ArrivalsOf(SamplesOf(rows, book.scale()), rows.clock_error_ns, false);
  EXPECT_NEAR(arrivals->skew_ns, 70'000, 100);
  EXPECT_NEAR(arrivals->transfer_ns, 20'000, 100);
}

TEST(Arrivals, OneHostHasOneClock) {
  coordinator::HostClocks clocks;
  clocks.Add(0, "a", "boot a");
  clocks.Add(1, "a", "boot a");
  clocks.SetOurs({1000, 0, 0, 10, 1.0});
  EXPECT_EQ(clocks.hosts().size(), 1u);
  EXPECT_EQ(clocks.ToOurs(1, 12345), 12345u);
  EXPECT_EQ(clocks.ErrorNs(1, 12345), 0);
}

TEST(Arrivals, OfAClockThatDidNotAnswerNothingIsClaimed) {
  coordinator::HostClocks clocks;
  clocks.Add(0, "a", "boot a");
  clocks.Add(1, "b", "boot b");
  clocks.SetOurs({1000, 0, 0, 10, 1.0});
  EXPECT_TRUE(std::isinf(clocks.ErrorNs(1, 1000)));
  EXPECT_FALSE(clocks.EstimateOf(1, 0).known);
}

}  // namespace
}  // namespace lockstep::bench::measure
