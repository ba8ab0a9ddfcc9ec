#include "core/base/process_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(ProcessStat, ANameMayHoldAnything) {
  const auto stat = ReadStat(
      "12 (a ) R b) T 4 5 6 7 -8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23 24 25 26 27 28 29 "
      "30 31 32 33 34 35 36 37 38 39 40");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'T');
  EXPECT_EQ(stat->parent, 4);
  EXPECT_EQ(stat->flags, 9u);
  EXPECT_EQ(stat->page_faults, 10u + 12u);
  EXPECT_EQ(stat->started, 4711u);
  EXPECT_EQ(stat->processor, 39);
  EXPECT_FALSE(ReadStat(""));
  EXPECT_FALSE(ReadStat("12 (cut) S 1 2"));
}

TEST(ProcessStat, OfAProcess) {
  ASSERT_TRUE(StatOf(getpid()));
  EXPECT_GT(StatOf(getpid())->started, 0u);
  EXPECT_EQ(StatOf(getpid())->parent, getppid());
  EXPECT_FALSE(StatOf(-1));
}

TEST(ProcessStat, WhatAProcessHasMapped) {
  EXPECT_TRUE(HasMapped(getpid(), "/libc.so"));
  EXPECT_FALSE(HasMapped(getpid(), "/libof no process.so"));
  EXPECT_FALSE(HasMapped(-1, "/"));
}

}  // namespace
}  // namespace lockstep
