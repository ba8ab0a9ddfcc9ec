// Holds the patterns against the plain computation of reference.h, for worlds of up to 9,001 ranks.
// Mistakes of a library are planted, and their rate of detection is counted. All random numbers
// have fixed seeds.
#include "core/collective/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/collective/half.h"
#include "core/collective/reference.h"

namespace lockstep::collective {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr std::uint64_t kSeed = 20240607;
constexpr std::array<Reduction, 4> kReductions = {Reduction::kSum, Reduction::kProd,
                                                  Reduction::kMin, Reduction::kMax};

std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }

// The send buffers of all ranks, filled for `stamp`.
std::vector<Bytes> FillAll(const Pattern& pattern, std::uint64_t stamp) {
  const Operation& op = pattern.operation();
  const std::int64_t bytes = SendBytes(op, pattern.world_size());
  std::vector<Bytes> sends;
  for (int rank = 0; rank < pattern.world_size(); ++rank) {
    sends.emplace_back(Index(bytes));
    pattern.FillSend(sends.back().data(), 0, bytes / SizeOf(op.type), rank, stamp);
  }
  return sends;
}

std::vector<const void*> Pointers(const std::vector<Bytes>& sends) {
  std::vector<const void*> pointers;
  for (const Bytes& send : sends) pointers.push_back(send.data());
  return pointers;
}

Bytes Receive(const Pattern& pattern, const std::vector<const void*>& sends, int rank) {
  Bytes recv(Index(RecvBytes(pattern.operation(), pattern.world_size())));
  ReferenceResult(pattern.operation(), pattern.world_size(), sends, rank, recv.data());
  return recv;
}

CheckReport Check(const Pattern& pattern, const Bytes& recv, int rank, std::uint64_t stamp) {
  CheckReport report;
  const auto count = static_cast<std::int64_t>(recv.size()) / SizeOf(pattern.operation().type);
  pattern.CheckRecv(recv.data(), 0, count, rank, stamp, report);
  return report;
}

std::vector<Operation> AllReductionsOf(Collective collective, std::int64_t count) {
  std::vector<Operation> operations;
  for (const DataType type : AllDataTypes()) {
    for (const Reduction reduction : kReductions) {
      operations.push_back(
          {.collective = collective, .type = type, .reduction = reduction, .count = count});
    }
  }
  return operations;
}

std::set<int> SomeRanks(int world) { return {0, world / 2, world - 1}; }

class PatternWorldTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, PatternWorldTest,
                         testing::Values(1, 2, 3, 8, 64, 1000, 4096, 9001));

// Every type and reduction, in several random orders of the ranks: not a bit differs.
TEST_P(PatternWorldTest, ReductionsAreExactInAnyOrder) {
  const int world = GetParam();
  Random random(kSeed);
  for (const Operation& op : AllReductionsOf(Collective::kAllReduce, world > 64 ? 70 : 2100)) {
    const Pattern pattern(kSeed, op, world);
    const auto sends = FillAll(pattern, 17);
    std::vector<const void*> order = Pointers(sends);
    for (int trial = 0; trial < 4; ++trial) {
      const CheckReport report = Check(pattern, Receive(pattern, order, 0), 0, 17);
      ASSERT_EQ(report.wrong, 0) << Describe(op) << " world " << world << ": expected "
                                 << report.first[0].expected << " got " << report.first[0].got;
      ASSERT_EQ(report.checked, op.count);
      random.Shuffle(order);
    }
  }
}

TEST_P(PatternWorldTest, ReduceAndReduceScatter) {
  const int world = GetParam();
  if (world > 1000) GTEST_SKIP() << "quadratic in the world size";
  const std::int64_t count = world > 64 ? 2 : 300;
  for (Operation op : AllReductionsOf(Collective::kReduceScatter, count)) {
    const Pattern pattern(kSeed, op, world);
    const auto sends = FillAll(pattern, 3);
    for (const int rank : SomeRanks(world)) {
      EXPECT_EQ(Check(pattern, Receive(pattern, Pointers(sends), rank), rank, 3).wrong, 0)
          << Describe(op);
    }
    op.collective = Collective::kReduce;
    op.root = world - 1;
    const Pattern rooted(kSeed, op, world);
    const auto rooted_sends = FillAll(rooted, 3);
    const CheckReport report =
        Check(rooted, Receive(rooted, Pointers(rooted_sends), op.root), op.root, 3);
    EXPECT_EQ(report.wrong, 0) << Describe(op);
    EXPECT_EQ(report.checked, count);
    const CheckReport other = Check(rooted, Bytes(Index(RecvBytes(op, world))), 0, 3);
    EXPECT_EQ(other.checked, world > 1 ? 0 : count);
  }
}

TEST_P(PatternWorldTest, Copies) {
  const int world = GetParam();
  for (const DataType type : AllDataTypes()) {
    for (const Collective collective :
         {Collective::kBroadcast, Collective::kAllGather, Collective::kRecv}) {
      const Operation op{.collective = collective, .type = type, .count = 50, .root = world / 3};
      const Pattern pattern(kSeed, op, world);
      const Pattern sender(kSeed, {.collective = Collective::kSend, .type = type, .count = 50},
                           world);
      const auto sends = FillAll(collective == Collective::kRecv ? sender : pattern, 9);
      for (const int rank : SomeRanks(world)) {
        const Bytes recv = Receive(pattern, Pointers(sends), rank);
        const CheckReport report = Check(pattern, recv, rank, 9);
        EXPECT_EQ(report.wrong, 0) << Describe(op);
        EXPECT_EQ(report.checked * SizeOf(type), static_cast<std::int64_t>(recv.size()));
        EXPECT_GE(Check(pattern, recv, rank, 10).wrong * 10, report.checked * 9);  // stale
      }
      EXPECT_NE(sends.front(), world > 1 ? sends.back() : Bytes()) << Describe(op);
    }
  }
}

TEST(PatternTest, CopiedFloatsAreFiniteAndVaried) {
  const Operation op{.collective = Collective::kBroadcast, .count = 4096};
  std::vector<float> values(4096);
  Pattern(kSeed, op, 2).FillSend(values.data(), 0, 4096, 0, 1);
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }));
  EXPECT_GT(std::count_if(values.begin(), values.end(), [](float v) { return v < 0; }), 1900);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
}

TEST(PatternTest, NothingToCheckInABarrier) {
  CheckReport report;
  Pattern(kSeed, {.collective = Collective::kBarrier}, 2).CheckRecv(nullptr, 0, 0, 0, 1, report);
  EXPECT_EQ(report.checked, 0);
}

// Every flipped bit is found, at its place, and nothing else.
TEST(PatternTest, EveryFlippedBitIsLocated) {
  Random random(5);
  for (const Operation& op : AllReductionsOf(Collective::kAllReduce, 3000)) {
    const Pattern pattern(kSeed, op, 8);
    Bytes recv = Receive(pattern, Pointers(FillAll(pattern, 4)), 0);
    for (int bit = 0; bit < 8 * static_cast<int>(SizeOf(op.type)); ++bit) {
      const auto element = static_cast<std::int64_t>(random.Below(3000));
      unsigned char& byte = recv[Index(element * SizeOf(op.type) + bit / 8)];
      byte = static_cast<unsigned char>(byte ^ (1u << (bit % 8)));
      const CheckReport report = Check(pattern, recv, 0, 4);
      ASSERT_EQ(report.wrong, 1) << Describe(op) << " bit " << bit;
      EXPECT_EQ(report.first.at(0).element, element);
      EXPECT_NE(report.first[0].expected, report.first[0].got);
      byte = static_cast<unsigned char>(byte ^ (1u << (bit % 8)));
    }
    EXPECT_EQ(Check(pattern, recv, 0, 4).wrong, 0);
  }
}

TEST(PatternTest, PrintsValuesExactly) {
  const Operation op{.count = 8};
  const Pattern pattern(kSeed, op, 2);
  std::vector<float> recv(8);
  Pattern(kSeed, op, 1).FillSend(recv.data(), 0, 8, 0, 1);
  CheckReport report;
  recv.assign(8, 0.1f);
  pattern.CheckRecv(recv.data(), 0, 8, 0, 1, report);
  EXPECT_EQ(report.wrong, 8);
  ASSERT_EQ(report.first.size(), CheckReport::kReported);
  EXPECT_EQ(report.first[0].got, "0.1 (0x3dcccccd)");
  EXPECT_THAT(report.first[0].expected, testing::MatchesRegex("[0-9]+ \\(0x4[0-9a-f]{7}\\)"));
}

TEST(PatternTest, PoisonIsNeverRight) {
  std::vector<Operation> operations = AllReductionsOf(Collective::kAllReduce, 5000);
  for (const DataType type : AllDataTypes()) {
    operations.push_back({.collective = Collective::kBroadcast, .type = type, .count = 5000});
  }
  for (const Operation& op : operations) {
    for (const int world : {1, 2, 1000}) {
      const Pattern pattern(kSeed, op, world);
      Bytes recv(Index(5000 * SizeOf(op.type)), 0x55);
      pattern.Poison(recv.data(), 0, 5000);
      EXPECT_EQ(Check(pattern, recv, 0, 1).wrong, 5000) << Describe(op) << " world " << world;
    }
  }
  std::vector<float> recv(100);
  Pattern(kSeed, {.count = 100}, 2).Poison(recv.data(), 0, 99);
  EXPECT_TRUE(std::isnan(recv[98]));
  EXPECT_EQ(recv[99], 0);
}

// Ranges that begin and end anywhere give what one call for all gives, each with its own stamp.
TEST(PatternTest, WindowsWithTheirOwnStamps) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    for (const DataType type : AllDataTypes()) {
      const Operation op{.collective = collective, .type = type, .count = 2500};
      const Pattern pattern(kSeed, op, 3);
      std::vector<Bytes> sends = FillAll(pattern, 1);
      const std::int64_t size = SizeOf(type);
      const std::int64_t send_count = SendBytes(op, 3) / size;
      for (std::int64_t begin = 700; begin < send_count; begin += 2500) {
        for (int rank = 0; rank < 3; ++rank) {
          pattern.FillSend(&sends[Index(rank)][Index(begin * size)], begin, 1111, rank, 2);
        }
      }
      const Bytes recv = Receive(pattern, Pointers(sends), 1);
      const std::int64_t recv_count = RecvBytes(op, 3) / size;
      CheckReport report;
      for (std::int64_t block = 0; block < recv_count; block += 2500) {
        const auto check = [&](std::int64_t begin, std::int64_t count, std::uint64_t stamp) {
          pattern.CheckRecv(&recv[Index(begin * size)], begin, count, 1, stamp, report);
        };
        check(block, 700, 1);
        check(block + 700, 1111, 2);
        check(block + 1811, 689, 1);
      }
      EXPECT_EQ(report.wrong, 0) << Describe(op);
      EXPECT_EQ(report.checked, recv_count);
    }
  }
}

TEST(PatternTest, ElementsBeyond32BitsDiffer) {
  const Operation op{.count = std::int64_t{1} << 40};
  const Pattern pattern(kSeed, op, 2);
  std::vector<float> low(64), high(64);
  pattern.FillSend(low.data(), 1000, 64, 0, 1);
  pattern.FillSend(high.data(), 1000 + (std::int64_t{1} << 36), 64, 0, 1);
  EXPECT_NE(low, high);
}

// What a broken library does to 16 elements of a reduction of 8 ranks.
struct Mistake {
  const char* name;
  void (*make)(const Pattern& pattern, std::vector<Bytes>& sends, Bytes& recv, int victim);
  bool idempotent_is_blind;  // a repeated contribution does not change min and max
};

void Redo(const Pattern& pattern, const std::vector<const void*>& sends, Bytes& recv) {
  const auto world = static_cast<int>(sends.size());
  ReferenceResult(pattern.operation(), world, sends, 0, recv.data());
}

const Mistake kMistakes[] = {
    {"stale result",
     [](const Pattern& pattern, std::vector<Bytes>&, Bytes& recv, int) {
       Redo(pattern, Pointers(FillAll(pattern, 1)), recv);
     },
     false},
    {"stale contribution of one rank",
     [](const Pattern& pattern, std::vector<Bytes>& sends, Bytes& recv, int victim) {
       sends[Index(victim)] = FillAll(pattern, 1)[Index(victim)];
       Redo(pattern, Pointers(sends), recv);
     },
     false},
    {"shifted by one element",
     [](const Pattern& pattern, std::vector<Bytes>&, Bytes& recv, int) {
       std::rotate(recv.begin(), recv.begin() + SizeOf(pattern.operation().type), recv.end());
     },
     false},
    {"halves exchanged",
     [](const Pattern&, std::vector<Bytes>&, Bytes& recv, int) {
       std::rotate(recv.begin(), recv.begin() + static_cast<std::ptrdiff_t>(recv.size() / 2),
                   recv.end());
     },
     false},
    {"missing rank",
     [](const Pattern& pattern, std::vector<Bytes>& sends, Bytes& recv, int victim) {
       sends.erase(sends.begin() + victim);
       Redo(pattern, Pointers(sends), recv);
     },
     false},
    {"doubled rank",
     [](const Pattern& pattern, std::vector<Bytes>& sends, Bytes& recv, int victim) {
       std::vector<const void*> pointers = Pointers(sends);
       pointers.push_back(sends[Index(victim)].data());
       Redo(pattern, pointers, recv);
     },
     true},
    {"one rank in the place of another",
     [](const Pattern& pattern, std::vector<Bytes>& sends, Bytes& recv, int victim) {
       sends[Index(victim)] = sends[Index((victim + 1) % 8)];
       Redo(pattern, Pointers(sends), recv);
     },
     false},
};

// Share of 200 iterations (of 16 elements) in which the mistake is seen.
double DetectionRate(const Operation& op, const Mistake& mistake) {
  const Pattern pattern(kSeed, op, 8);
  int seen = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto stamp = static_cast<std::uint64_t>(trial + 2);
    std::vector<Bytes> sends = FillAll(pattern, stamp);
    Bytes recv = Receive(pattern, Pointers(sends), 0);
    mistake.make(pattern, sends, recv, trial % 8);
    if (Check(pattern, recv, 0, stamp).wrong > 0) ++seen;
  }
  return seen / 200.0;
}

// Sums see everything. A product sees a factor of 1 by nature no more than min and max see a rank
// that does not decide: at W = 8 a rank decides in 1 - (7/8)^16 = 88 % of 16-element iterations.
TEST(PatternTest, MistakesOfALibraryShowIn16Elements) {
  for (const Operation& op : AllReductionsOf(Collective::kAllReduce, 16)) {
    const bool sum = op.reduction == Reduction::kSum;
    const bool product = op.reduction == Reduction::kProd;
    const double at_least = sum ? 1.0 : product ? 0.99 : 0.8;
    for (const Mistake& mistake : kMistakes) {
      if (mistake.idempotent_is_blind && !sum && !product) continue;
      EXPECT_GE(DetectionRate(op, mistake), at_least) << Describe(op) << ": " << mistake.name;
    }
  }
}

// With 1000 ranks and 8 bits only some ranks contribute to an element: it takes more elements.
TEST(PatternTest, AMissingRankOf1000ShowsInEnoughElements) {
  for (const DataType type : AllDataTypes()) {
    const bool wide = SizeOf(type) > 1 && type != DataType::kBf16;
    const Operation op{.type = type, .count = wide ? 16 : IsFloat8(type) ? 8000 : 400};
    const Pattern pattern(kSeed, op, 1000);
    std::vector<const void*> pointers;
    const auto sends = FillAll(pattern, 1);
    for (const int victim : {0, 1, 500, 998, 999}) {
      pointers = Pointers(sends);
      pointers.erase(pointers.begin() + victim);
      Bytes recv(Index(op.count * SizeOf(type)));
      Redo(pattern, pointers, recv);
      EXPECT_GE(Check(pattern, recv, 0, 1).wrong, wide ? 16 : 8) << NameOf(type) << victim;
    }
  }
}

}  // namespace
}  // namespace lockstep::collective
