// A rank's batches: from a real file through the loader, or, in virtual time, the same samples with
// the time that decoding them would take.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "datasets/sampler/sampler.h"
#include "stress/scenario/loading.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Status StartEpoch(std::int64_t epoch) = 0;
  // The samples of the next batch, by index; false: the epoch is over.
  virtual Result<bool> Next(std::vector<std::int64_t>& samples) = 0;
};

// `ports` and `program` outlive it. The file is made for the run and has lost its name by then.
Result<std::unique_ptr<BatchSource>> OpenBatches(const scenario::LoadingProgram& program,
                                                 std::uint64_t seed, const RankPorts& ports);

// What the rank is to load in the epoch, by PyTorch's rules.
Result<datasets::sampler::SampleIndices> IndicesOf(const scenario::LoadingProgram& program,
                                                   std::int64_t epoch, int rank, int ranks,
                                                   std::uint64_t seed);

}  // namespace lockstep::stress::workloads
