// For torch_compare_test: reads a sampler a line, "n world rank seed epoch shuffle drop_last" or
// "w draws seed weights…", and prints its indices on a line.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "datasets/sampler/sampler.h"

namespace lockstep::datasets::sampler {
namespace {

Result<SampleIndices> Weighted(std::istringstream& words) {
  std::int64_t draws = 0;
  std::uint64_t seed = 0;
  words >> draws >> seed;
  std::vector<double> weights;
  for (double weight = 0; words >> weight;) weights.push_back(weight);
  return WeightedIndices(weights, draws, seed);
}

Result<SampleIndices> Distributed(std::istringstream& words) {
  SamplerOptions options = {.rules = ddp::TorchRules::k1_13};
  std::string seed;
  words >> options.samples >> options.world >> options.rank >> seed >> options.epoch >>
      options.shuffle >> options.drop_last;
  LOCKSTEP_ASSIGN_OR_RETURN(options.seed, ParseSeed("seed", seed, options.epoch));
  return DistributedIndices(options);
}

int Main() {
  for (std::string line; std::getline(std::cin, line);) {
    const bool weighted = line.starts_with("w ");
    std::istringstream words(weighted ? line.substr(2) : line);
    const auto indices = weighted ? Weighted(words) : Distributed(words);
    LOCKSTEP_CHECK(indices.ok(), indices.status().message());
    for (std::int64_t k = 0; k < indices->size(); ++k) {
      std::printf(k > 0 ? " %lld" : "%lld", static_cast<long long>((*indices)[k]));
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::datasets::sampler

int main() { return lockstep::datasets::sampler::Main(); }
