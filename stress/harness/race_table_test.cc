// The table of races from made-up costs: a cure is recommended only where its cost means something.
#include "stress/harness/race_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::stress::harness {
namespace {

using testing::HasSubstr;
using testing::Not;

using Facts = std::vector<std::pair<std::string, std::string>>;

RaceRow Row(const std::string& pattern, const std::string& guard, double corrupt, double round_us,
            std::optional<double> extra_us) {
  return {pattern, guard, 40, corrupt, corrupt, std::nullopt, round_us, extra_us};
}

std::vector<RaceRow> Rows(double event_us, double sync_us, double other_pattern_us) {
  return {Row("buffer_reuse", "event", 0, 1000 + event_us, event_us),
          Row("buffer_reuse", "none", 40, 1000, std::nullopt),
          Row("buffer_reuse", "stream_sync", 0, 1000 + sync_us, sync_us),
          Row("buffer_reuse", "launch_blocking", 1, 900, -100),
          Row("missing_wait_after", "event", 0, 1000 + other_pattern_us, other_pattern_us),
          Row("missing_wait_after", "none", 0, 1000, std::nullopt)};
}

TEST(RaceTable, TheCheapestCureIsNamedWhereItLeads) {
  std::vector<RaceRow> rows = Rows(8, 500, 3);
  rows.erase(rows.begin() + 3);
  const std::string text = FormatRaceTable(rows, true);
  EXPECT_THAT(text, HasSubstr("buffer_reuse: wrong in 100 % of the rounds; right with event, "
                              "stream_sync; the cheapest here is 'event'\n"));
  EXPECT_THAT(text, HasSubstr("+500 us"));
  EXPECT_THAT(text, Not(HasSubstr("missing_wait_after: ")));  // nothing was wrong there
}

// A cure makes no round faster: a cost below 0 tells by how much these times scatter.
TEST(RaceTable, NothingIsRecommendedFromACostBelowZero) {
  for (const auto& rows : {Rows(-27000, -23000, 3), Rows(8, 500, -2000), Rows(8, 100, 3)}) {
    const std::string text = FormatRaceTable(rows, true);
    EXPECT_THAT(text, HasSubstr("right with event, stream_sync; which is the cheapest is not told: "
                                "the times scatter by more than the cures differ\n"));
    EXPECT_THAT(text, Not(HasSubstr("the cheapest here")));
  }
}

TEST(RaceTable, WhereTimesMeanNothingNoCostIsShown) {
  const std::string text = FormatRaceTable(Rows(8, 500, 3), false);
  EXPECT_THAT(text, Not(HasSubstr("+500 us")));
  EXPECT_THAT(text, HasSubstr("right with event, stream_sync; which is the cheapest is not told: "
                              "that takes three processors for each rank\n"));
}

TEST(RaceTable, ARankNeedsThreeProcessors) {
  const Facts two = {{"ranks/0/boot_id", "a"},
                     {"ranks/0/cpus", "0,1"},
                     {"ranks/1/boot_id", "a"},
                     {"ranks/1/cpus", "0,1"}};
  EXPECT_FALSE(TimesMeanSomething("gloo", two));
  EXPECT_TRUE(TimesMeanSomething("sim_nccl", two));
  EXPECT_FALSE(TimesMeanSomething("gloo", {}));  // not known
  Facts six = two;
  six[1].second = six[3].second = "0,1,2,3,4,15";
  EXPECT_TRUE(TimesMeanSomething("gloo", six));
  six[3].second = "0,1,2";  // the sixth is the other's alone
  EXPECT_TRUE(TimesMeanSomething("gloo", six));
  six[1].second = "0,1,2,3,4";
  EXPECT_FALSE(TimesMeanSomething("gloo", six));
  six[0].second = "b";  // a host of its own
  EXPECT_TRUE(TimesMeanSomething("gloo", six));
}

}  // namespace
}  // namespace lockstep::stress::harness
