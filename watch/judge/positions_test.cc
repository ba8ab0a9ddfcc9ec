// The judge's containers, held against those of the standard library through random changes.
#include "watch/judge/positions.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "watch/judge/by_thread.h"

namespace lockstep::watch::judge {
namespace {

TEST(Positions, HoldWhatAMapHoldsThroughAnyOrderOfChanges) {
  Positions positions;
  std::map<std::uint64_t, int> wanted;
  std::mt19937 random(5);
  std::uint64_t newest = 0;
  for (int step = 1; step <= 100'000; ++step) {
    // Mostly the next one; sometimes one with a gap, or one that is late.
    const std::uint64_t place = random() % 8 ? ++newest : newest + random() % 20 - newest % 7;
    newest = std::max(newest, place);
    if (wanted.emplace(place, step).second) {
      ASSERT_EQ(positions.Find(place), nullptr);
      Position& begun = positions.Begin(place);
      ASSERT_TRUE(begun.came.empty() && begun.different.empty() && begun.entered == 0);
      begun.first_rank = step;
      begun.came.assign(3, true);
      begun.different.assign(2, 1);
      begun.entered = 1;
    }
    while (wanted.size() > random() % 40) {
      auto erased = wanted.begin();
      if (random() % 4 == 0) std::advance(erased, random() % wanted.size());
      positions.Erase(erased->first);
      wanted.erase(erased);
    }
    ASSERT_EQ(positions.size(), wanted.size());
    std::size_t number = 0;
    for (const auto& [at, first_rank] : wanted) {
      ASSERT_EQ(positions[number].place, at);
      ASSERT_EQ(positions[number].first_rank, first_rank);
      ASSERT_EQ(positions.Find(at), &positions[number]);
      ++number;
    }
  }
}

TEST(ByThread, HoldsWhatAMapHolds) {
  ByThread<int> threads;
  std::map<std::uint16_t, int> wanted;
  std::mt19937 random(3);
  for (int step = 1; step <= 10'000; ++step) {
    const auto thread = static_cast<std::uint16_t>(random() % 12);
    if (random() % 3 == 0) {
      threads.erase(thread);
      wanted.erase(thread);
    } else {
      threads[thread] = wanted[thread] = step;
    }
    ASSERT_EQ(std::vector(threads.begin(), threads.end()),
              (std::vector<std::pair<std::uint16_t, int>>(wanted.begin(), wanted.end())));
    ASSERT_EQ(threads.find(thread) != threads.end(), wanted.count(thread) > 0);
  }
}

}  // namespace
}  // namespace lockstep::watch::judge
