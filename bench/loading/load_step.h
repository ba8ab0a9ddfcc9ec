// A case whose iteration is a batch of a sharded dataset on every rank, then a barrier: what uneven
// loading costs the ranks that are done.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/loading/cases.h"
#include "bench/measure/step.h"
#include "datasets/loader/loader.h"

namespace lockstep::bench::loading {

class LoadStep final : public measure::Step {
 public:
  LoadStep(const measure::Bench& bench, std::uint32_t case_index);

  // Begins an epoch and takes the batches that prefetching had time for.
  Status Prepare() override;
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  // The loader verifies every byte; here, that the samples are the sampler's.
  void Compare(measure::Comparison& comparison) override;
  Status TakeParts(std::vector<double>& values) override;

 private:
  Status Open();
  Status BeginEpoch();
  Status Next();

  measure::Bench bench_;
  ShardedLoad plan_;
  std::unique_ptr<datasets::loader::Loader> loader_;
  std::int64_t epochs_ = 0;  // begun
  datasets::loader::LoadedBatch batch_;
  Ticks loaded_ = 0;  // of the last Run
  comm::Interval interval_;
};

}  // namespace lockstep::bench::loading
