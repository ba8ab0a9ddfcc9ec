// Bytes of a sample follow from seed and index alone, so a reader knows what it must find. Sizes
// are drawn log-uniformly. The checksum changes with any single changed word.
#include "datasets/shards/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "core/base/units.h"

namespace lockstep::datasets::shards {
namespace {

constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;
constexpr std::int64_t kMostSampleBytes = std::int64_t{1} << 30;
constexpr std::int64_t kTextsSmallerBy = 16;
constexpr std::uint32_t kVocabulary = 50257;

Random RandomOf(const DatasetSpec& spec, std::int64_t index) {
  return Random(Mix64(spec.seed) ^ static_cast<std::uint64_t>(index));
}

}  // namespace

std::string_view NameOf(DatasetKind kind) {
  static constexpr std::string_view kNames[] = {"images", "tokens", "mixed"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<DatasetKind> ParseDatasetKind(std::string_view option, std::string_view text) {
  for (const auto kind : {DatasetKind::kImages, DatasetKind::kTokens, DatasetKind::kMixed}) {
    if (text == NameOf(kind)) return kind;
  }
  return InvalidInput("{}: '{}' is no kind of dataset; choose images, tokens or mixed", option,
                      text);
}

Status Validate(const DatasetSpec& spec) {
  if (spec.samples < 1 || spec.samples > kMostSamples) {
    return InvalidInput("--samples: {} samples; give a number from 1 to 2^40", spec.samples);
  }
  if (spec.min_bytes < 4 || spec.min_bytes > kMostSampleBytes) {
    return InvalidInput("--min-sample: {}; give a size from 4 B to 1 GiB",
                        FormatBytes(spec.min_bytes));
  }
  if (spec.max_bytes < spec.min_bytes || spec.max_bytes > kMostSampleBytes) {
    return InvalidInput("--max-sample: {}; give a size from --min-sample ({}) to 1 GiB",
                        FormatBytes(spec.max_bytes), FormatBytes(spec.min_bytes));
  }
  return OkStatus();
}

SampleKind KindOfSample(const DatasetSpec& spec, std::int64_t index) {
  if (spec.kind == DatasetKind::kImages) return SampleKind::kImage;
  if (spec.kind == DatasetKind::kTokens) return SampleKind::kTokens;
  return RandomOf(spec, index).Below(2) == 0 ? SampleKind::kImage : SampleKind::kTokens;
}

std::int64_t BytesOfSample(const DatasetSpec& spec, std::int64_t index) {
  Random random = RandomOf(spec, index);
  random.Next();  // the kind
  const double low = std::log(static_cast<double>(spec.min_bytes));
  const double high = std::log(static_cast<double>(spec.max_bytes));
  auto bytes = static_cast<std::int64_t>(std::exp(low + (high - low) * random.Uniform()));
  bytes = std::clamp(bytes, spec.min_bytes, spec.max_bytes);
  const bool text =
      spec.kind == DatasetKind::kMixed && KindOfSample(spec, index) == SampleKind::kTokens;
  return std::max<std::int64_t>(4, (text ? bytes / kTextsSmallerBy : bytes) / 4 * 4);
}

void FillSample(const DatasetSpec& spec, std::int64_t index, std::span<std::byte> bytes) {
  Random random(Mix64(RandomOf(spec, index).Next()));
  const bool tokens = KindOfSample(spec, index) == SampleKind::kTokens;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    const std::uint64_t word = random.Next();
    const auto value = static_cast<std::uint32_t>(tokens ? (word >> 32) * kVocabulary >> 32 : word);
    std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(4, bytes.size() - at));
  }
}

std::uint64_t SampleChecksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return Mix64(sum);
}

}  // namespace lockstep::datasets::shards
