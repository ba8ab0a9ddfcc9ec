// What the send buffer holds after parts of it were written, and which stamps its pieces have.
#include "bench/measure/input_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace lockstep::bench::measure {
namespace {

constexpr std::int64_t kBytes = 64 * InputArena::kGranuleBytes;

collective::Operation OfFloats(
    collective::Collective collective = collective::Collective::kAllReduce) {
  collective::Operation operation;
  operation.collective = collective;
  operation.count = kBytes / 4;
  return operation;
}

// Two ranks' arenas, and the sum that an all-reduce of a range would give.
struct World {
  std::vector<float> a = std::vector<float>(kBytes / 4), b = a;
  InputArena first{a.data(), kBytes, 0}, second{b.data(), kBytes, 1};

  std::int64_t WrongIn(const collective::Pattern& pattern, ArenaRange range) const {
    collective::CheckReport report;
    first.ForEachStamp(range, [&](std::int64_t begin, std::int64_t bytes, std::uint32_t stamp) {
      std::vector<float> sum;
      for (std::int64_t i = begin / 4; i < (begin + bytes) / 4; ++i) {
        sum.push_back(a[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(i)]);
      }
      pattern.CheckRecv(sum.data(), begin / 4, bytes / 4, 0, stamp, report);
    });
    EXPECT_EQ(report.checked, range.bytes / 4);
    return report.wrong;
  }
};

TEST(InputArenaTest, EveryPieceIsCheckedWithItsOwnStamp) {
  const collective::Pattern pattern(7, OfFloats(), 2);
  World world;
  std::uint32_t stamp = 1;
  for (InputArena* arena : {&world.first, &world.second}) {
    arena->Select(pattern, true);
    arena->Cover({0, kBytes}, stamp);
  }
  const ArenaRange ranges[] = {{0, 8}, {0, 1000}, {512, 4096}, {0, kBytes}, {1024, 516}};
  for (int i = 0; i < 500; ++i) {
    const ArenaRange range = ranges[i % 5];
    ++stamp;
    for (InputArena* arena : {&world.first, &world.second}) {
      arena->Rewrite(range, i % 3, 3, stamp);
    }
    ASSERT_EQ(world.WrongIn(pattern, range), 0) << i;
  }
  ASSERT_EQ(world.WrongIn(pattern, {0, kBytes}), 0);
  world.b[100] += 1;  // … and it can fail
  EXPECT_EQ(world.WrongIn(pattern, {0, kBytes}), 1);
}

TEST(InputArenaTest, CoverWritesOnlyWhatIsMissing) {
  const collective::Pattern pattern(7, OfFloats(), 2);
  World world;
  for (InputArena* arena : {&world.first, &world.second}) {
    arena->Select(pattern, true);
    arena->Cover({512, 512}, 1);
    arena->Cover({0, kBytes}, 2);
  }
  std::vector<std::uint32_t> stamps;
  world.first.ForEachStamp({0, kBytes}, [&](std::int64_t, std::int64_t, std::uint32_t stamp) {
    stamps.push_back(stamp);
  });
  EXPECT_EQ(stamps, (std::vector<std::uint32_t>{2, 1, 2}));
  EXPECT_EQ(world.WrongIn(pattern, {0, kBytes}), 0);
}

TEST(InputArenaTest, AnotherKindForgetsAndASilentRankWritesNothing) {
  World world;
  world.first.Select(collective::Pattern(7, OfFloats(), 2), true);
  world.first.Cover({0, kBytes}, 5);
  std::vector<float> before = world.a;
  world.first.Select(collective::Pattern(7, OfFloats(collective::Collective::kBroadcast), 2),
                     false);
  world.first.Cover({0, 512}, 6);
  EXPECT_EQ(std::memcmp(before.data(), world.a.data(), kBytes), 0);
  world.first.ForEachStamp({0, 1024}, [&](std::int64_t begin, std::int64_t, std::uint32_t stamp) {
    EXPECT_EQ(stamp, begin == 0 ? 6u : 0u);
  });
}

}  // namespace
}  // namespace lockstep::bench::measure
