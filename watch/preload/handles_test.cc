// What a table of handles holds, through any order of changes, and of several with one handle.
#include "watch/preload/handles.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace lockstep::watch::preload {
namespace {

TEST(HandleTable, HoldsWhatAMapHoldsThroughAnyOrderOfChanges) {
  static HandleTable<1024> table;
  std::multimap<std::uint64_t, std::uint32_t> wanted;
  std::mt19937 random(7);
  for (std::uint32_t step = 1; step <= 200'000; ++step) {
    const std::uint64_t key = random() % 600 + 1;
    if (random() % 2 == 0 && wanted.size() < 700) {
      ASSERT_TRUE(table.Insert({key, 0, step, 0}));
      wanted.emplace(key, step);
      continue;
    }
    Known known;
    ASSERT_EQ(table.Remove(key, &known), wanted.count(key) > 0) << "step " << step;
    if (known.key == 0) continue;
    const auto [first, last] = wanted.equal_range(key);
    auto found = first;
    while (found != last && found->second != known.number) ++found;
    ASSERT_NE(found, last) << "step " << step;
    wanted.erase(found);
  }
}

TEST(HandleTable, RefusesBeforeItIsFull) {
  static HandleTable<16> table;
  int held = 0;
  while (table.Insert({static_cast<std::uint64_t>(held) + 1, 0, 0, 0})) ++held;
  EXPECT_EQ(held, 12);
  Known known;
  EXPECT_FALSE(table.Find(99, &known));
  EXPECT_TRUE(table.Remove(1, &known));
  EXPECT_TRUE(table.Insert({99, 5, 0, 0}));
  EXPECT_TRUE(table.Find(99, &known));
  EXPECT_EQ(known.value, 5u);
}

TEST(HandleTable, OneHandleMayStandForSeveralThings) {
  static HandleTable<64> table;
  table.Insert({7, 0, 1, 0});
  table.Insert({7, 0, 2, 0});
  Known first;
  Known second;
  Known none;
  EXPECT_TRUE(table.Remove(7, &first));
  EXPECT_TRUE(table.Remove(7, &second));
  EXPECT_NE(first.number, second.number);
  EXPECT_FALSE(table.Remove(7, &none));
}

// Two threads: one has not forgotten a handle yet which the library gave to the other one.
TEST(HandleTable, AHandleThatComesAgainIsThatOfTheNewest) {
  static HandleTable<64> table;
  for (const std::uint32_t number : {1, 2, 9, 3}) table.Insert({7, 0, number, 0});
  Known known;
  EXPECT_TRUE(table.FindNewest(7, &known));
  EXPECT_EQ(known.number, 3u);
  EXPECT_TRUE(table.RemoveOne(7, 2, &known));
  EXPECT_EQ(known.number, 2u);
  EXPECT_TRUE(table.RemoveOne(7, 2, &known));
  EXPECT_EQ(known.number, 1u);
  EXPECT_TRUE(table.RemoveOne(7, 9, &known));
  EXPECT_TRUE(table.FindNewest(7, &known));
  EXPECT_EQ(known.number, 3u);
  EXPECT_TRUE(table.RemoveOne(7, 3, &known));
  EXPECT_FALSE(table.RemoveOne(7, 3, &known));
  EXPECT_FALSE(table.FindNewest(7, &known));
}

// It was freed, and its handle is another object's by now.
// A library that gives no handle twice fills no table.
TEST(LastGone, TheNewestStay) {
  static HandleTable<2048> table;
  static LastGone gone(table);
  constexpr std::uint64_t kMany = 100'000;
  for (std::uint64_t key = 1; key <= kMany; ++key) {
    ASSERT_TRUE(table.Insert({key, 7 * key, 0, 1}));
    gone.Mark({key, 7 * key, 0, 1}, 9);
  }
  Known known;
  EXPECT_FALSE(table.Find(kMany - gone.kMost, &known));
  for (std::uint64_t key = kMany - gone.kMost + 1; key <= kMany; ++key) {
    ASSERT_TRUE(table.Find(key, &known) && known.code == 9) << key;
  }
}

TEST(LastGone, AHandleThatCameAgainStays) {
  static HandleTable<2048> table;
  static LastGone gone(table);
  Known known;
  table.Insert({5, 1, 0, 0});
  gone.Mark({5, 1, 0, 0}, 9);
  table.Remove(5, &known);
  table.Insert({5, 2, 0, 0});
  for (std::uint64_t key = 10; key < 10 + gone.kMost; ++key) {
    table.Insert({key, 0, 0, 0});
    gone.Mark({key, 0, 0, 0}, 9);
  }
  ASSERT_TRUE(table.Find(5, &known));
  EXPECT_EQ(known.value, 2u);
}

TEST(HandleTable, TheVeryOneOrNone) {
  static HandleTable<64> table;
  table.Insert({7, 5, 1, 0});
  Known held;
  ASSERT_TRUE(table.Find(7, &held));
  EXPECT_TRUE(table.Mark(held, 3));
  Known known;
  EXPECT_TRUE(table.Find(7, &known));
  EXPECT_EQ(known.code, 3u);
  table.Remove(7, &known);
  table.Insert({7, 5, 2, 0});
  EXPECT_FALSE(table.Mark(held, 3));
  EXPECT_FALSE(table.RemoveSame(held));
  EXPECT_TRUE(table.Find(7, &known));
  EXPECT_EQ(known.number, 2u);
  EXPECT_TRUE(table.RemoveSame(known));
  EXPECT_FALSE(table.Find(7, &known));
}

}  // namespace
}  // namespace lockstep::watch::preload
