// Writes files, flips bytes anywhere, and reads them again. Damage must end in one line or in
// samples that fail their check.
#include "datasets/shards/shard_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/status.h"
#include "datasets/shards/samples.h"

namespace lockstep::datasets::shards {
namespace {

namespace fs = std::filesystem;

constexpr DatasetSpec kSpec = {.samples = 50, .min_bytes = 100, .max_bytes = 5000, .seed = 9};

std::string PlaceFor(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(ShardFile, HoldsWhatTheSeedSays) {
  const std::string path = PlaceFor("whole.h5");
  const auto bytes = MakeShardFile(path, kSpec);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto shard = ShardFile::Open(path);
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  EXPECT_EQ(shard->samples(), 50);
  EXPECT_EQ(shard->spec().seed, 9u);
  std::int64_t total = 0;
  std::vector<int> kinds(2);
  for (std::int64_t i = 0; i < 50; ++i) {
    std::vector<std::byte> read;
    ASSERT_TRUE(shard->Read(i, read).ok());
    EXPECT_TRUE(shard->Verify(i, read).ok());
    std::vector<std::byte> expected(static_cast<std::size_t>(BytesOfSample(kSpec, i)));
    FillSample(kSpec, i, expected);
    EXPECT_EQ(read, expected) << i;
    total += static_cast<std::int64_t>(read.size());
    ++kinds.at(static_cast<std::size_t>(KindOfSample(kSpec, i)));
  }
  EXPECT_EQ(total, *bytes);
  EXPECT_GT(kinds[0], 10);
  EXPECT_GT(kinds[1], 10);
  ASSERT_TRUE(MakeShardFile(PlaceFor("again.h5"), kSpec).ok());
  EXPECT_EQ(Slurp(path).size(), Slurp(PlaceFor("again.h5")).size());
}

TEST(ShardFile, AnyFlippedByteOfASampleIsFound) {
  Random random(3);
  std::vector<std::byte> bytes(777);
  FillSample(kSpec, 0, bytes);
  const std::uint64_t sum = SampleChecksum(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto bit = static_cast<std::byte>(1u << random.Below(8));
    bytes[i] ^= bit;
    EXPECT_NE(SampleChecksum(bytes), sum) << i;
    bytes[i] ^= bit;
  }
  EXPECT_EQ(SampleChecksum(bytes), sum);
}

// Damage of any kind ends in one line or in samples that fail their check: never in a crash.
TEST(ShardFile, DamageIsToldAndNeverPassesForData) {
  const std::string path = PlaceFor("sound.h5");
  const std::string damaged = PlaceFor("damaged.h5");
  ASSERT_TRUE(MakeShardFile(path, kSpec).ok());
  const std::string sound = Slurp(path);
  Random random(5);
  int refused = 0;
  int corrupt = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::string bytes = sound;
    if (trial % 3 == 0) {
      bytes.resize(random.Below(bytes.size()));
    } else {
      // Metadata is at both ends of so small a file.
      const std::size_t reach = trial % 3 == 1 ? bytes.size() : 4096;
      bytes[random.Below(reach)] ^= static_cast<char>(1 + random.Below(255));
    }
    Spill(damaged, bytes);
    const auto shard = ShardFile::Open(damaged);
    refused += shard.ok() ? 0 : 1;
    if (!shard.ok()) {
      EXPECT_TRUE(shard.status().message().starts_with(damaged + ": ")) << trial;
      EXPECT_EQ(shard.status().message().find('\n'), std::string::npos);
      continue;
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(50, shard->samples()); ++i) {
      std::vector<std::byte> read;
      if (!shard->Read(i, read).ok() || !shard->Verify(i, read).ok()) {
        ++corrupt;
        continue;
      }
      std::vector<std::byte> expected(static_cast<std::size_t>(BytesOfSample(kSpec, i)));
      FillSample(kSpec, i, expected);
      ASSERT_EQ(read, expected) << "trial " << trial << " sample " << i;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(corrupt, 50);
}

TEST(ShardFile, RefusesAndLeavesNothingBehind) {
  const auto message = [](const std::string& path, const DatasetSpec& spec) {
    return MakeShardFile(path, spec).status().message();
  };
  const std::string path = PlaceFor("none/x.h5");
  EXPECT_EQ(message(PlaceFor("x.h5"), {.samples = 0}),
            "--samples: 0 samples; give a number from 1 to 2^40");
  EXPECT_NE(message(PlaceFor("x.h5"), {.samples = 1, .min_bytes = 9, .max_bytes = 8})
                .find("--max-sample: 8 B"),
            std::string::npos);
  EXPECT_NE(message(path, kSpec).find("cannot be written"), std::string::npos);
  EXPECT_NE(message("/dev/full", kSpec).find("is no file name"), std::string::npos);
  EXPECT_FALSE(fs::exists(PlaceFor("x.h5")));
  EXPECT_NE(ShardFile::Open(path).status().message().find("make-dataset"), std::string::npos);
  Spill(PlaceFor("text.h5"), "no HDF5");
  EXPECT_FALSE(ShardFile::Open(PlaceFor("text.h5")).ok());
}

}  // namespace
}  // namespace lockstep::datasets::shards
