// Which samples a rank sees: PyTorch's DistributedSampler and WeightedRandomSampler, index for
// index (torch/utils/data/distributed.py, the same from PyTorch 1.9 to 2.6).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "datasets/sampler/huge_array.h"

namespace lockstep::datasets::sampler {

struct SamplerOptions {
  std::int64_t samples = 0;  // len(dataset), n
  std::int64_t world = 1;    // num_replicas
  std::int64_t rank = 0;
  std::uint64_t seed = 0;  // a negative seed in two's complement, as in torch.Generator
  std::int64_t epoch = 0;  // set_epoch(epoch); the generator's seed is seed + epoch
  bool shuffle = true;
  bool drop_last = false;
  ddp::TorchRules rules =
      ddp::TorchRules::k2_6;  // before 2.6 one rule of shuffling holds for every n
};

// Ok, or what is wrong with them in one line (the options are named as `lockstep sampler` does).
Status Validate(const SamplerOptions& options);

// How many indices each rank gets; the same for all ranks. Options must be valid.
std::int64_t SamplesPerRank(const SamplerOptions& options);

// The value of a seed as Python would pass it to manual_seed: -2^63 … 2^64 - 1, together with the
// epoch that will be added.
Result<std::uint64_t> ParseSeed(std::string_view option, std::string_view text, std::int64_t epoch);

// The k-th index is (rank + k * world) mod samples.
struct RegularIndices {
  std::int64_t samples = 1;
  std::int64_t world = 1;
  std::int64_t rank = 0;
  std::int64_t count = 0;
};

// An immutable sequence of sample indices. Without a shuffle it is a rule and takes no memory.
class SampleIndices {
 public:
  SampleIndices() : indices_(RegularIndices()) {}
  explicit SampleIndices(RegularIndices rule) : indices_(rule) {}
  explicit SampleIndices(HugeArray<std::uint32_t> indices) : indices_(std::move(indices)) {}
  explicit SampleIndices(HugeArray<std::uint64_t> indices) : indices_(std::move(indices)) {}
  explicit SampleIndices(std::vector<std::int64_t> indices) : indices_(std::move(indices)) {}

  std::int64_t size() const;
  std::int64_t operator[](std::int64_t k) const;  // 0 <= k < size()

 private:
  std::variant<RegularIndices, HugeArray<std::uint32_t>, HugeArray<std::uint64_t>,
               std::vector<std::int64_t>>
      indices_;
};

// The list DistributedSampler yields on this rank in this epoch. Shuffled, it takes the memory of
// the permutation at most: 4 bytes a sample below 2^32 samples, 8 from there on.
Result<SampleIndices> DistributedIndices(const SamplerOptions& options);

// WeightedRandomSampler(weights, draws, replacement=True) = torch.multinomial on float64. It knows
// no ranks: equally seeded ranks draw the same. From 2 draws on; PyTorch draws a single one by
// another rule, which depends on how it was built.
Result<SampleIndices> WeightedIndices(std::span<const double> weights, std::int64_t draws,
                                      std::uint64_t seed);

// FNV-1a's step with 64 bits over the eight bytes of each index, little endian. The starting value
// is the widespread 1469598103934665603, which lacks a digit of FNV's own offset basis: the
// recorded sums in testdata/golden.txt were taken with it.
class IndexHash {
 public:
  void Add(std::int64_t index) {
    for (int byte = 0; byte < 8; ++byte) {
      value_ = (value_ ^ (static_cast<std::uint64_t>(index) >> (8 * byte) & 255)) * 1099511628211u;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 1469598103934665603u;
};

}  // namespace lockstep::datasets::sampler
