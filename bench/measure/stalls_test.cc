// Which sleeping ranks are stalls: those that were seen to go on.
#include "bench/measure/stalls.h"

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::bench::measure {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Rank 1 sleeps in the collective that rank 0 waits in.
verdict::RankEvidence Waits() { return verdict::At50(0).Silent(1); }
verdict::History Sleeps() { return verdict::At50(1).Silent(1).Asleep("asleep in pause"); }

TEST(StallWatch, ARankThatNeverWentOnIsNoSlowRank) {
  StallWatch watch;
  watch.Look({Waits(), Sleeps()}, 0);
  watch.Look({Waits(), Sleeps().Silent(9)}, 0);
  EXPECT_THAT(watch.stalls(), IsEmpty());
  watch.Interrupted({Waits(), Sleeps().Silent(10)});
  EXPECT_THAT(watch.stalls(), IsEmpty());
}

TEST(StallWatch, ARankThatWentOnIsOne) {
  StallWatch watch;
  watch.Look({Waits(), Sleeps()}, 2);
  watch.Look({Waits(), Sleeps().Silent(2)}, 2);
  watch.RoundDone();
  ASSERT_THAT(watch.stalls(), SizeIs(1));
  EXPECT_EQ(watch.stalls()[0].rank, 1);
  EXPECT_EQ(watch.stalls()[0].repetition, 2);
  EXPECT_THAT(watch.stalls()[0].where, HasSubstr("all_reduce 50"));
}

// It slept, went on, and something else ended the round.
TEST(StallWatch, GoneOnBeforeAnInterruption) {
  StallWatch watch;
  watch.Look({Waits(), Sleeps()}, 0);
  const verdict::History later =
      verdict::History(1).In(journal::Phase::kMeasure).Does(verdict::AllReduce(), 60);
  watch.Interrupted(
      {verdict::History(0).In(journal::Phase::kMeasure).Does(verdict::AllReduce(), 60).Signalled(9),
       later});
  EXPECT_THAT(watch.stalls(), SizeIs(1));
  // The next round has nothing to do with it.
  watch.Interrupted({Waits(), Sleeps()});
  EXPECT_THAT(watch.stalls(), SizeIs(1));
}

TEST(StallWatch, ARankThatEndedInThereDidNotGoOn) {
  const verdict::RankEvidence ends[] = {Sleeps().Signalled(9), Sleeps().Exited(1), Sleeps().Lost(),
                                        verdict::At50(1).Reports("timed out")};
  for (const verdict::RankEvidence& end : ends) {
    StallWatch watch;
    watch.Look({Waits(), Sleeps()}, 0);
    watch.Interrupted({Waits(), end});
    EXPECT_THAT(watch.stalls(), IsEmpty());
  }
}

TEST(StallWatch, AllAsleepOrNobodyOrNotForLong) {
  StallWatch watch;
  watch.Look({verdict::At50(0).Silent(1).Asleep("asleep"), Sleeps()}, 0);
  watch.Look({Waits(), verdict::At50(1).Silent(1)}, 0);
  watch.Look({Waits(), Sleeps().Silent(0.1)}, 0);
  watch.RoundDone();
  EXPECT_THAT(watch.stalls(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::bench::measure
