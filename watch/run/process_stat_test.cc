#include "watch/run/process_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep::watch::run {
namespace {

TEST(ProcessStat, ANameMayHoldAnything) {
  const auto stat = ReadStat("12 (a ) R b) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'T');
  EXPECT_EQ(stat->started, 4711u);
  EXPECT_FALSE(ReadStat(""));
  EXPECT_FALSE(ReadStat("12 (cut) S 1 2"));
}

TEST(ProcessStat, OfAProcess) {
  ASSERT_TRUE(StatOf(getpid()));
  EXPECT_GT(StatOf(getpid())->started, 0u);
  EXPECT_FALSE(StatOf(-1));
}

}  // namespace
}  // namespace lockstep::watch::run
