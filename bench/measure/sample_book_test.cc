// What the book makes of outboxes, those of ranks that died included.
#include "bench/measure/sample_book.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "bench/plan/testing/doubling.h"

namespace lockstep::bench::measure {
namespace {

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
  plan::Plan plan = plan::Doubling({}, 2, 1);
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
