// torch.multinomial with replacement: pytorch aten/src/ATen/native/cpu/MultinomialKernel.cpp.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "datasets/sampler/mersenne_twister.h"
#include "datasets/sampler/sampler.h"

namespace lockstep::datasets::sampler {
namespace {

constexpr std::size_t kMostWeights = std::size_t{1} << 24;  // as PyTorch

Status CheckWeights(std::span<const double> weights, std::int64_t draws) {
  if (weights.empty() || weights.size() > kMostWeights) {
    return InvalidInput("weights: {} of them; give 1 to 2^24, as PyTorch takes", weights.size());
  }
  if (draws < 2) {
    return InvalidInput(
        "weights: {} draws; give 2 or more (a single one differs between builds of PyTorch)",
        draws);
  }
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      return InvalidInput("weights: number {} is {}; give finite ones from 0 on", i, weights[i]);
    }
    sum += weights[i];
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    return InvalidInput("weights: their sum is {}; give a positive, finite one", sum);
  }
  return OkStatus();
}

}  // namespace

Result<SampleIndices> WeightedIndices(std::span<const double> weights, std::int64_t draws,
                                      std::uint64_t seed) {
  LOCKSTEP_RETURN_IF_ERROR(CheckWeights(weights, draws));
  std::vector<double> cumulative(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) cumulative[i] = sum += weights[i];
  for (double& each : cumulative) each /= sum;
  cumulative.back() = 1;
  TorchGenerator generator(seed);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(draws));
  for (std::int64_t& index : indices) {
    constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 53) - 1;
    const double uniform = static_cast<double>(generator.Next64() & kMantissa) * 0x1.0p-53;
    index = std::lower_bound(cumulative.begin(), cumulative.end(), uniform) - cumulative.begin();
  }
  return SampleIndices(std::move(indices));
}

}  // namespace lockstep::datasets::sampler
