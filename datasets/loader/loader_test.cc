// Loads a small dataset with any number of workers and compares every byte. Results tell how many
// decoding passes were made, so no time is measured.
#include "datasets/loader/loader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/journal/event.h"
#include "core/journal/journal.h"
#include "datasets/sampler/sampler.h"
#include "datasets/shards/samples.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::datasets::loader {
namespace {

constexpr shards::DatasetSpec kSpec = {
    .samples = 101, .min_bytes = 200, .max_bytes = 4000, .seed = 4};

std::vector<std::byte> BytesOf(std::int64_t index) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(shards::BytesOfSample(kSpec, index)));
  shards::FillSample(kSpec, index, bytes);
  return bytes;
}

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() : path_(testing::TempDir() + "/loader_test.h5") {
    const auto made = shards::MakeShardFile(path_, kSpec);
    EXPECT_TRUE(made.ok()) << made.status().message();
  }
  std::unique_ptr<Loader> Open(const LoaderOptions& options) const {
    auto loader = Loader::Open(path_, options);
    EXPECT_TRUE(loader.ok()) << loader.status().message();
    return std::move(loader).value();
  }
  // Flips a bit in the middle of a sample, in the file.
  void Damage(std::int64_t index) const {
    std::ifstream in(path_, std::ios::binary);
    std::string file{std::istreambuf_iterator<char>(in), {}};
    const std::vector<std::byte> bytes = BytesOf(index);
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const std::size_t at = file.find(std::string(text, bytes.size()));
    ASSERT_NE(at, std::string::npos);
    file[at + bytes.size() / 2] ^= 16;
    std::ofstream(path_, std::ios::binary) << file;
  }

  std::string path_;
};

// Loads an epoch; checks bytes, order and the sizes of the batches against the sampler.
void ExpectEpoch(Loader& loader, const sampler::SampleIndices& expected,
                 const LoaderOptions& options) {
  LoadedBatch batch;
  std::int64_t seen = 0;
  std::int64_t number = 0;
  for (;; ++number) {
    const Result<bool> more = loader.Next(batch);
    ASSERT_TRUE(more.ok()) << more.status().message();
    if (!*more) break;
    EXPECT_EQ(batch.number, number);
    const auto size = static_cast<std::int64_t>(batch.samples.size());
    EXPECT_EQ(size, std::min(options.batch, expected.size() - seen));
    std::int64_t bytes = 0;
    for (const LoadedSample& sample : batch.samples) {
      ASSERT_EQ(sample.index, expected[seen++]);
      ASSERT_EQ(sample.bytes, BytesOf(sample.index));
      EXPECT_EQ(sample.decoded, Decode(sample.bytes, options.decode_passes * options.slow_down));
      bytes += static_cast<std::int64_t>(sample.bytes.size());
    }
    EXPECT_EQ(batch.bytes, bytes);
    EXPECT_GT(batch.read_seconds, 0);
    EXPECT_GT(batch.decode_seconds, 0);
  }
  EXPECT_EQ(number, loader.batches());
  const std::int64_t dropped = options.drop_last_batch ? expected.size() % options.batch : 0;
  EXPECT_EQ(seen, expected.size() - dropped);
}

TEST_F(LoaderTest, TheRightSamplesInTheRightOrderForAnyNumberOfWorkers) {
  for (const int workers : {0, 1, 2, 5}) {
    for (const std::int64_t batch : {1, 8, 1000}) {
      SCOPED_TRACE(fmt::format("workers={} batch={}", workers, batch));
      LoaderOptions options = {.sampler = {.world = 3, .rank = 2, .seed = 5},
                               .batch = batch,
                               .drop_last_batch = batch == 8,
                               .workers = workers,
                               .prefetch = batch == 1 ? 1 : 2,
                               .decode_passes = 1.5};
      const std::unique_ptr<Loader> loader = Open(options);
      for (const std::int64_t epoch : {0, 1, 1}) {
        ASSERT_TRUE(loader->StartEpoch(epoch).ok());
        sampler::SamplerOptions sampler = options.sampler;
        sampler.samples = kSpec.samples;
        sampler.epoch = epoch;
        ExpectEpoch(*loader, *sampler::DistributedIndices(sampler), options);
      }
    }
  }
}

TEST_F(LoaderTest, WeightsDrawAsMultinomialDoes) {
  LoaderOptions options = {.sampler = {.world = 4, .rank = 1, .drop_last = true}, .batch = 10};
  for (std::int64_t i = 0; i < kSpec.samples; ++i) {
    options.weights.push_back(static_cast<double>(i % 3));
  }
  const std::unique_ptr<Loader> loader = Open(options);
  ASSERT_TRUE(loader->StartEpoch(7).ok());
  const auto expected = sampler::WeightedIndices(options.weights, kSpec.samples / 4, 7);
  ExpectEpoch(*loader, *expected, options);
}

TEST_F(LoaderTest, AFlippedBitIsFoundAndNamed) {
  Damage(40);
  for (const int workers : {0, 3}) {
    const std::unique_ptr<Loader> loader =
        Open({.sampler = {.shuffle = false}, .batch = 16, .workers = workers});
    ASSERT_TRUE(loader->StartEpoch(0).ok());
    LoadedBatch batch;
    EXPECT_TRUE(*loader->Next(batch));
    EXPECT_TRUE(*loader->Next(batch)) << "the batches before it are sound";
    const Result<bool> third = loader->Next(batch);
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.status().code(), StatusCode::kInvalidInput);
    EXPECT_TRUE(third.status().message().starts_with(path_ + ": sample 40 is corrupt"))
        << third.status().message();
    EXPECT_FALSE(loader->Next(batch).ok()) << "nothing comes after it";
  }
}

// Every pass goes on from the result of the last one: a result tells how many there were.
TEST_F(LoaderTest, ASlowDownIsSoManyMorePasses) {
  for (const int workers : {0, 2}) {
    const std::unique_ptr<Loader> loader =
        Open({.batch = 101, .workers = workers, .decode_passes = 2, .slow_down = 10});
    ASSERT_TRUE(loader->StartEpoch(0).ok());
    LoadedBatch batch;
    ASSERT_TRUE(*loader->Next(batch));
    for (const LoadedSample& sample : batch.samples) {
      EXPECT_EQ(sample.decoded, Decode(sample.bytes, 20));
      EXPECT_NE(sample.decoded, Decode(sample.bytes, 2));
      EXPECT_NE(sample.decoded, Decode(sample.bytes, 19));
    }
    // Reading and decoding are parts of it where nothing is prefetched.
    if (workers == 0) {
      EXPECT_GE(batch.load_seconds, batch.read_seconds + batch.decode_seconds);
    }
  }
}

TEST_F(LoaderTest, ADeadlineEndsTheWait) {
  const std::unique_ptr<Loader> loader =
      Open({.batch = 8, .workers = 1, .decode_passes = 20'000, .deadline_seconds = 1e-6});
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  LoadedBatch batch;
  const Result<bool> first = loader->Next(batch);
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(first.status().message().find("batch 0 was not loaded within 1e-06 s"),
            std::string::npos);
}

TEST_F(LoaderTest, LoadsAreJournaled) {
  constexpr std::size_t kCapacity = 64;
  std::vector<journal::JournalEvent> memory(
      journal::JournalBytes(kCapacity) / sizeof(journal::JournalEvent) + 1);
  const auto bytes =
      std::as_writable_bytes(std::span(memory)).first(journal::JournalBytes(kCapacity));
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  journal::JournalWriter writer = journal::JournalWriter::Create(bytes, kCapacity);
  const std::unique_ptr<Loader> loader = Open({.batch = 60, .journal = &writer});
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  LoadedBatch batch;
  while (*loader->Next(batch)) continue;
  const journal::Journal journal = journal::JournalReader(bytes, kCapacity).Newest(kCapacity);
  std::string phases;
  for (const journal::JournalEvent& event : journal.events)
    phases += fmt::format("{} ", journal::NameOf(event.phase));
  EXPECT_EQ(phases, "load compute load compute load compute ");
}

TEST_F(LoaderTest, Refuses) {
  const auto says = [this](const LoaderOptions& options) {
    return Loader::Open(path_, options).status().message();
  };
  EXPECT_EQ(says({.batch = 0}), "batch: 0 samples; give 1 to 2^32");
  EXPECT_EQ(says({.workers = -1}), "workers: -1; give 0 to 256");
  EXPECT_EQ(says({.prefetch = 0}), "prefetch: 0 batches a worker; give 1 to 1024");
  EXPECT_EQ(says({.weights = {1, 2}}), "weights: 2 for 101 samples; give one a sample");
  EXPECT_EQ(says({.slow_down = -1}),
            "decode: 1 passes slowed down -1 times; give numbers from 0 on, together below 10^9");
  EXPECT_EQ(says({.deadline_seconds = 0}), "deadline: 0 s; give more than 0, below 10^9");
  EXPECT_FALSE(says({.sampler = {.world = 2, .rank = 2}}).empty());
  EXPECT_FALSE(Loader::Open(path_ + ".none", {}).ok());
}

TEST_F(LoaderTest, AnEpochMayBeLeftInTheMiddle) {
  const std::unique_ptr<Loader> loader = Open({.batch = 4, .workers = 3});
  LoadedBatch batch;
  for (int epoch = 0; epoch < 20; ++epoch) {
    ASSERT_TRUE(loader->StartEpoch(epoch).ok());
    EXPECT_TRUE(*loader->Next(batch));
    EXPECT_EQ(batch.number, 0);
  }
}

}  // namespace
}  // namespace lockstep::datasets::loader
