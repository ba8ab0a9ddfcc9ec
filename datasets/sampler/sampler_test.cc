// The sampler against PyTorch's own output and against the definition of randperm.
#include "datasets/sampler/sampler.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "datasets/sampler/permutation.h"
#include "datasets/sampler/shuffle_steps.h"

namespace lockstep::datasets::sampler {
namespace {

// "[a, b, …] " of the first five, as in the golden file.
std::string FirstFive(const SampleIndices& indices) {
  std::string text;
  for (std::int64_t k = 0; k < std::min<std::int64_t>(5, indices.size()); ++k) {
    text += fmt::format("{}{}", k > 0 ? ", " : "", indices[k]);
  }
  return "[" + text + "]";
}

std::string Sum(const SampleIndices& indices) {
  IndexHash hash;
  for (std::int64_t k = 0; k < indices.size(); ++k) hash.Add(indices[k]);
  return fmt::format("{:016x} {}", hash.value(), FirstFive(indices));
}

SampleIndices Must(const SamplerOptions& options) {
  Result<SampleIndices> indices = DistributedIndices(options);
  EXPECT_TRUE(indices.ok()) << indices.status().message();
  return std::move(indices).value();
}

std::vector<std::int64_t> ListOf(const SampleIndices& indices) {
  std::vector<std::int64_t> list;
  for (std::int64_t k = 0; k < indices.size(); ++k) list.push_back(indices[k]);
  return list;
}

std::string OfGoldenLine(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  if (kind == "mn") {
    std::vector<double> weights;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      weights.push_back(static_cast<double>(i * 2654435761u % 1000 + 1) / 7);
    }
    const auto drawn = WeightedIndices(weights, 5000, 3);
    EXPECT_TRUE(drawn.ok());
    return Sum(*drawn);
  }
  SamplerOptions options;
  words >> options.samples;
  if (kind == "ds") words >> options.world >> options.rank;
  words >> options.seed;
  if (kind == "ds") words >> options.epoch >> options.shuffle >> options.drop_last;
  const SampleIndices indices = Must(options);
  return fmt::format("{} {}", indices.size(), Sum(indices));
}

TEST(SamplerGolden, EveryRecordedLine) {
  std::ifstream file("datasets/sampler/testdata/golden.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t arrow = line.find(" => ");
    if (line.starts_with("#") || arrow == std::string::npos) continue;
    EXPECT_EQ(OfGoldenLine(line), line.substr(arrow + 4)) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 25);
}

// randperm as its definition reads, with the standard library's generator.
std::vector<std::int64_t> Defined(const Shuffle& shuffle) {
  std::mt19937 draw(static_cast<std::uint32_t>(shuffle.seed));
  std::vector<std::int64_t> r(static_cast<std::size_t>(shuffle.n));
  std::iota(r.begin(), r.end(), 0);
  for (std::int64_t i = 0; i < shuffle.steps(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (shuffle.rule == ShuffleRule::kForward) {
      const auto z = static_cast<std::int64_t>(draw()) % (shuffle.n - i);
      std::swap(r[at], r[at + static_cast<std::size_t>(z)]);
    } else {
      const std::uint64_t high = draw();
      const std::uint64_t z = (high << 32 | draw()) % (static_cast<std::uint64_t>(i) + 1);
      r[at] = r[z];
      r[z] = i;
    }
  }
  return r;
}

template <typename Position>
void ExpectAsDefined(const Shuffle& shuffle, std::int64_t world, std::int64_t rank) {
  SCOPED_TRACE(fmt::format("n={} seed={} inside_out={} world={} rank={} bits={}", shuffle.n,
                           shuffle.seed, shuffle.rule == ShuffleRule::kInsideOut, world, rank,
                           8 * sizeof(Position)));
  const std::vector<std::int64_t> defined = Defined(shuffle);
  const auto whole = WholePermutation<Position>(shuffle);
  ASSERT_TRUE(whole.ok());
  for (std::size_t i = 0; i < defined.size(); ++i) {
    ASSERT_EQ(static_cast<std::int64_t>((*whole)[i]), defined[i]) << i;
  }
  const Wanted wanted = {.world = world, .rank = rank, .count = (shuffle.n + world - 1) / world};
  const auto traced = TracedPermutation<Position>(shuffle, wanted);
  ASSERT_TRUE(traced.ok());
  for (std::int64_t k = 0; k < wanted.count; ++k) {
    const auto from = static_cast<std::size_t>((rank + k * world) % shuffle.n);
    ASSERT_EQ(static_cast<std::int64_t>((*traced)[static_cast<std::uint64_t>(k)]), defined[from])
        << k;
  }
}

TEST(Permutation, BothWalksAndBothRulesAreAsDefined) {
  constexpr std::uint64_t kSeed = 20260101;
  RecordProperty("seed", std::to_string(kSeed));
  fmt::print("seed {}\n", kSeed);
  Random random(kSeed);
  for (int trial = 0; trial < 400; ++trial) {
    const auto most = trial % 20 == 0 ? 1'000'000u : 3000u;  // several pieces, or part of a block
    const auto n = static_cast<std::int64_t>(1 + random.Below(most));
    const auto world = static_cast<std::int64_t>(1 + random.Below(trial % 3 == 0 ? 3 : 40));
    const auto rank = static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(world)));
    const auto rule = trial % 2 == 0 ? ShuffleRule::kForward : ShuffleRule::kInsideOut;
    const Shuffle shuffle = {.n = n, .seed = random.Next(), .rule = rule};
    if (trial % 5 == 0)
      ExpectAsDefined<std::uint64_t>(shuffle, world, rank);
    else
      ExpectAsDefined<std::uint32_t>(shuffle, world, rank);
    if (HasFatalFailure()) return;
  }
}

TEST(Sampler, RanksCoverTheSamplesAndOnlyPaddingRepeats) {
  Random random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const auto n = static_cast<std::int64_t>(random.Below(200));
    const auto world = static_cast<std::int64_t>(1 + random.Below(12));
    const SamplerOptions options = {.samples = n,
                                    .world = world,
                                    .seed = random.Next(),
                                    .shuffle = trial % 4 != 0,
                                    .drop_last = trial % 2 == 0};
    std::vector<std::int64_t> times(static_cast<std::size_t>(n));
    std::int64_t total = 0;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      SamplerOptions of_rank = options;
      of_rank.rank = rank;
      const SampleIndices indices = Must(of_rank);
      EXPECT_EQ(indices.size(), SamplesPerRank(options));
      total += indices.size();
      for (const std::int64_t index : ListOf(indices)) ++times.at(static_cast<std::size_t>(index));
    }
    const std::int64_t expected = n == 0              ? 0
                                  : options.drop_last ? n / world * world
                                                      : (n + world - 1) / world * world;
    EXPECT_EQ(total, expected) << n << " " << world;
    if (n == 0) continue;
    const auto [fewest, most] = std::minmax_element(times.begin(), times.end());
    if (options.drop_last) {
      EXPECT_LE(*most, 1);
    } else {
      EXPECT_GE(*fewest, 1);
      EXPECT_LE(*most, (total + n - 1) / n);
    }
  }
}

TEST(Sampler, TheEpochDecidesTheOrderAndOnlyTogetherWithTheSeed) {
  SamplerOptions options = {.samples = 1000, .world = 2, .rank = 1};
  const auto first = ListOf(Must(options));
  EXPECT_EQ(ListOf(Must(options)), first) << "without set_epoch it repeats";
  options.epoch = 1;
  const auto second = ListOf(Must(options));
  EXPECT_NE(second, first);
  options = {.samples = 1000, .world = 2, .rank = 1, .seed = 1};
  EXPECT_EQ(ListOf(Must(options)), second) << "the generator knows only seed + epoch";
  options.seed = static_cast<std::uint64_t>(-1);
  options.epoch = 2;
  EXPECT_EQ(ListOf(Must(options)), second) << "-1 + 2";
}

TEST(Sampler, TheRuleChangesWithPyTorchAtTheThreshold) {
  // randperm(n)[:5] on PyTorch 2.6.0, seed 0: the last n of the old rule, the first of the new one.
  const auto first_five = [](std::int64_t n, ShuffleRule rule) {
    const auto values = TracedPermutation<std::uint32_t>({.n = n, .seed = 0, .rule = rule},
                                                         {.world = 1, .rank = 0, .count = 5});
    std::vector<std::uint32_t> list;
    for (std::uint64_t k = 0; k < 5; ++k) list.push_back((*values)[k]);
    return list;
  };
  const std::vector<std::uint32_t> below = {209652414, 184016258, 65237881, 190120003, 11868659};
  const std::vector<std::uint32_t> at = {180140102, 136514640, 18739608, 22357822, 33761584};
  EXPECT_EQ(first_five(kInsideOutFrom - 1, ShuffleRule::kForward), below);
  EXPECT_EQ(first_five(kInsideOutFrom, ShuffleRule::kInsideOut), at);

  SamplerOptions options = {.samples = kInsideOutFrom, .world = kInsideOutFrom};
  EXPECT_EQ(Must(options)[0], 180140102);
  options.rules = ddp::TorchRules::k1_13;
  EXPECT_NE(Must(options)[0], 180140102) << "before 2.6 the old rule holds for every n";
  options = {.samples = kInsideOutFrom - 1, .world = kInsideOutFrom - 1};
  EXPECT_EQ(Must(options)[0], 209652414);
}

TEST(Sampler, WithoutShuffleNothingIsStored) {
  const SampleIndices indices =
      Must({.samples = std::int64_t{1} << 53, .world = 3, .rank = 2, .shuffle = false});
  EXPECT_EQ(indices.size(), ((std::int64_t{1} << 53) + 2) / 3);
  EXPECT_EQ(indices[1], 5);
  EXPECT_EQ(indices[indices.size() - 1], 0) << "padding from the head: 2^53 = 2 mod 3";
}

TEST(Sampler, Refuses) {
  const auto says = [](const SamplerOptions& options) {
    return DistributedIndices(options).status().message();
  };
  EXPECT_EQ(says({.samples = -1}), "--samples: -1 samples; give a number from 0 to 2^53");
  EXPECT_EQ(says({.samples = 1, .world = 0}), "--ranks: 0 ranks; give a number from 1 to 2^31");
  EXPECT_EQ(says({.samples = 1, .world = 2, .rank = 2}),
            "--rank: 2 is no rank of 2; give a number from 0 to 1");
  EXPECT_NE(says({.samples = std::int64_t{1} << 53}).find("do not fit"), std::string::npos);
  EXPECT_EQ(*ParseSeed("--seed", "-9223372036854775808", 0), std::uint64_t{1} << 63);
  EXPECT_EQ(*ParseSeed("--seed", "18446744073709551615", 0), ~std::uint64_t{0});
  EXPECT_FALSE(ParseSeed("--seed", "18446744073709551615", 1).ok());
  EXPECT_FALSE(ParseSeed("--seed", "-9223372036854775809", 1).ok());
  for (const char* text : {"", "-", "1x", "0x1", " 1", "1e3"}) {
    EXPECT_FALSE(ParseSeed("--seed", text, 0).ok()) << text;
  }
}

TEST(Weighted, FollowsTheWeightsAndRefusesWhatPyTorchRefuses) {
  const auto drawn = WeightedIndices(std::vector<double>{0, 3, 0, 1}, 4000, 11);
  ASSERT_TRUE(drawn.ok());
  std::vector<int> times(4);
  for (const std::int64_t index : ListOf(*drawn)) ++times.at(static_cast<std::size_t>(index));
  EXPECT_EQ(times[0], 0);
  EXPECT_EQ(times[2], 0);
  EXPECT_NEAR(times[1], 3000, 150);
  const double kNan = std::nan("");
  const std::vector<std::vector<double>> bad = {{}, {1, -1}, {1, kNan}, {0, 0}};
  for (const auto& weights : bad) EXPECT_FALSE(WeightedIndices(weights, 10, 0).ok());
  EXPECT_FALSE(WeightedIndices(std::vector<double>{1}, 1, 0).ok());
}

}  // namespace
}  // namespace lockstep::datasets::sampler
