// What a follower hears of its coordinator, second by second.
#include "core/coordinator/coordinator_watch.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::coordinator {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kLostSeconds = 20;

// The first second in which the coordinator is taken for lost, by a follower that looks at `looks`
// and hears of it at `heard`; 0: it is not.
int LostAt(const std::set<int>& looks, const std::set<int>& heard, bool runs = false,
           const std::set<int>& rests = {}) {
  CoordinatorWatch watch;
  watch.Begin(kLostSeconds, 0);
  int read = 0;
  for (const int second : looks) {
    for (; read < second; ++read) {
      if (heard.contains(read + 1)) watch.Hear(second * kSecond);
      if (rests.contains(read + 1)) watch.Rest(60);
    }
    if (watch.Look(second * kSecond, [&] { return runs; }) == Silence::kLost) return second;
  }
  return 0;
}

std::set<int> EverySecondUntil(int last) {
  std::set<int> seconds;
  for (int second = 1; second <= last; ++second) seconds.insert(second);
  return seconds;
}

TEST(CoordinatorWatch, SilenceBeyondTheBoundIsALoss) {
  EXPECT_EQ(LostAt(EverySecondUntil(100), {5, 10}), 31);
  EXPECT_EQ(LostAt(EverySecondUntil(100), {15, 30, 45, 60, 75, 90}), 0);
}

// Writing a file to a disk that others write to takes as long as it takes.
TEST(CoordinatorWatch, WhoSaidThatItIsAtWorkMayBeSilent) {
  EXPECT_EQ(LostAt(EverySecondUntil(70), {5, 10, 60}, false, {11}), 0);
}

TEST(CoordinatorWatch, ARestIsOverWhenItIsHeardOf) {
  EXPECT_EQ(LostAt(EverySecondUntil(100), {5, 10, 60}, false, {11}), 81);
}

TEST(CoordinatorWatch, ARestHasAnEnd) {
  EXPECT_EQ(LostAt(EverySecondUntil(1000), {5, 10}, false, {11}), 71);
  EXPECT_EQ(LostAt(EverySecondUntil(1000), {5, 10}, true, {11}), 611);
}

// On this host its process is seen: neither stopped nor gone, it waits for a processor or a disk.
TEST(CoordinatorWatch, WhoIsSeenToRunIsNotLost) {
  EXPECT_EQ(LostAt(EverySecondUntil(100), {5, 10}, true), 0);
  EXPECT_EQ(LostAt(EverySecondUntil(1000), {5, 10}, true), 611) << "it may hang";
}

// What came while this process had no processor is heard before anything is concluded.
TEST(CoordinatorWatch, WhoListensLateHearsLate) {
  EXPECT_EQ(LostAt({5, 10, 14, 21, 28}, {15, 22}), 0);
  EXPECT_EQ(LostAt({3600}, {}), 0) << "it slept itself";
}

TEST(CoordinatorWatch, HalfOfTheBoundIsDoubtful) {
  CoordinatorWatch watch;
  EXPECT_EQ(watch.Look(100 * kSecond, [] { return false; }), Silence::kNone) << "before they met";
  watch.Begin(kLostSeconds, 100 * kSecond);
  EXPECT_EQ(watch.Look(105 * kSecond, [] { return false; }), Silence::kNone);
  EXPECT_EQ(watch.Look(111 * kSecond, [] { return false; }), Silence::kDoubtful);
  watch.Hear(112 * kSecond);
  EXPECT_EQ(watch.Look(113 * kSecond, [] { return false; }), Silence::kNone);
}

}  // namespace
}  // namespace lockstep::coordinator
