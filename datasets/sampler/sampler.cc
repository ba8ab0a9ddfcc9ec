// PyTorch's samplers as rules or lists of indices. From many ranks on, wanted positions are traced
// backwards instead of shuffling all. Padding and drop_last follow distributed.py.
#include "datasets/sampler/sampler.h"

#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "datasets/sampler/permutation.h"
#include "datasets/sampler/shuffle_steps.h"

namespace lockstep::datasets::sampler {
namespace {

// PyTorch divides lengths as doubles, which are exact up to here.
constexpr std::int64_t kMostSamples = std::int64_t{1} << 53;
constexpr std::int64_t kMostRanks = std::int64_t{1} << 31;

// From this many ranks on it is faster to trace the wanted indices back than to shuffle all.
constexpr std::int64_t kTraceFromWorld = 32;

Shuffle ShuffleOf(const SamplerOptions& options) {
  const bool inside_out =
      options.rules == ddp::TorchRules::k2_6 && options.samples >= kInsideOutFrom;
  return {.n = options.samples,
          .seed = options.seed + static_cast<std::uint64_t>(options.epoch),
          .rule = inside_out ? ShuffleRule::kInsideOut : ShuffleRule::kForward};
}

template <typename Position>
Result<SampleIndices> ShuffledIndices(const SamplerOptions& options) {
  const Wanted wanted = {
      .world = options.world, .rank = options.rank, .count = SamplesPerRank(options)};
  const Shuffle shuffle = ShuffleOf(options);
  if (wanted.world >= kTraceFromWorld) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto indices, TracedPermutation<Position>(shuffle, wanted));
    return SampleIndices(std::move(indices));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto all, WholePermutation<Position>(shuffle));
  if (wanted.world == 1) return SampleIndices(std::move(all));
  // In place: the k-th is taken from a place at or behind k, but for those that wrap around to
  // the head, which is kept.
  const Position head = all[static_cast<std::uint64_t>(
      (wanted.rank + (wanted.count - 1) * wanted.world) % options.samples)];
  for (std::int64_t k = 0; k < wanted.count; ++k) {
    const std::int64_t from = wanted.rank + k * wanted.world;
    all[static_cast<std::uint64_t>(k)] =
        from < options.samples ? all[static_cast<std::uint64_t>(from)] : head;
  }
  all.Shrink(static_cast<std::uint64_t>(wanted.count));
  return SampleIndices(std::move(all));
}

}  // namespace

Status Validate(const SamplerOptions& options) {
  if (options.samples < 0 || options.samples > kMostSamples) {
    return InvalidInput("--samples: {} samples; give a number from 0 to 2^53", options.samples);
  }
  if (options.world < 1 || options.world > kMostRanks) {
    return InvalidInput("--ranks: {} ranks; give a number from 1 to 2^31", options.world);
  }
  if (options.rank < 0 || options.rank >= options.world) {
    return InvalidInput("--rank: {} is no rank of {}; give a number from 0 to {}", options.rank,
                        options.world, options.world - 1);
  }
  return OkStatus();
}

std::int64_t SamplesPerRank(const SamplerOptions& options) {
  const std::int64_t whole = options.samples / options.world;
  const bool uneven = options.samples % options.world != 0;
  return whole + (uneven && !options.drop_last ? 1 : 0);
}

Result<std::uint64_t> ParseSeed(std::string_view option, std::string_view text,
                                std::int64_t epoch) {
  const bool negative = text.starts_with('-');
  std::uint64_t magnitude = 0;
  const char* const first = text.data() + (negative ? 1 : 0);
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, magnitude);
  const __int128 value = negative ? -static_cast<__int128>(magnitude) : __int128{magnitude};
  const __int128 sum = value + epoch;
  constexpr __int128 kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr __int128 kHighest = std::numeric_limits<std::uint64_t>::max();
  if (error != std::errc() || end != last || sum < kLowest || sum > kHighest || value < kLowest) {
    return InvalidInput(
        "{}: '{}' plus epoch {} is no seed of PyTorch; give a whole number from -2^63 to 2^64-1",
        option, text, epoch);
  }
  return static_cast<std::uint64_t>(value);
}

std::int64_t SampleIndices::size() const {
  if (const auto* rule = std::get_if<RegularIndices>(&indices_)) return rule->count;
  if (const auto* narrow = std::get_if<1>(&indices_)) {
    return static_cast<std::int64_t>(narrow->size());
  }
  if (const auto* wide = std::get_if<2>(&indices_)) return static_cast<std::int64_t>(wide->size());
  return static_cast<std::int64_t>(std::get<3>(indices_).size());
}

std::int64_t SampleIndices::operator[](std::int64_t k) const {
  const auto at = static_cast<std::uint64_t>(k);
  if (const auto* narrow = std::get_if<1>(&indices_)) return (*narrow)[at];
  if (const auto* wide = std::get_if<2>(&indices_)) return static_cast<std::int64_t>((*wide)[at]);
  if (const auto* list = std::get_if<3>(&indices_)) return (*list)[at];
  const RegularIndices& rule = std::get<RegularIndices>(indices_);
  return (rule.rank + k * rule.world) % rule.samples;
}

Result<SampleIndices> DistributedIndices(const SamplerOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(Validate(options));
  const std::int64_t count = SamplesPerRank(options);
  if (count == 0) return SampleIndices();
  if (!options.shuffle) {
    return SampleIndices(RegularIndices{
        .samples = options.samples, .world = options.world, .rank = options.rank, .count = count});
  }
  if (options.samples < std::numeric_limits<std::uint32_t>::max()) {
    return ShuffledIndices<std::uint32_t>(options);
  }
  return ShuffledIndices<std::uint64_t>(options);
}

}  // namespace lockstep::datasets::sampler
