// Synthetic samples: every byte follows from the dataset's seed and the sample's index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/status.h"

namespace lockstep::datasets::shards {

enum class SampleKind : std::uint8_t { kImage = 0, kTokens = 1 };
enum class DatasetKind : std::uint8_t { kImages, kTokens, kMixed };

std::string_view NameOf(DatasetKind kind);
Result<DatasetKind> ParseDatasetKind(std::string_view option, std::string_view text);

// Sizes are log-uniform from min_bytes to max_bytes, multiples of 4. In a mixed dataset half the
// samples are texts, 16 times smaller than the images.
struct DatasetSpec {
  std::int64_t samples = 0;
  DatasetKind kind = DatasetKind::kMixed;
  std::int64_t min_bytes = 16 * 1024;
  std::int64_t max_bytes = 256 * 1024;
  std::uint64_t seed = 1;
};

// Ok, or what is wrong, naming the options of `lockstep make-dataset`.
Status Validate(const DatasetSpec& spec);

SampleKind KindOfSample(const DatasetSpec& spec, std::int64_t index);
std::int64_t BytesOfSample(const DatasetSpec& spec, std::int64_t index);
// `bytes` is BytesOfSample() long. Tokens are 32-bit numbers below GPT-2's vocabulary, 50257.
void FillSample(const DatasetSpec& spec, std::int64_t index, std::span<std::byte> bytes);

// Finds accidents: any one changed 64-bit word always changes it. No signature.
std::uint64_t SampleChecksum(std::span<const std::byte> bytes);

}  // namespace lockstep::datasets::shards
