// A case whose iteration is a batch of a sharded dataset on every rank, then a barrier: what uneven
// loading costs the ranks that are done.
#ifndef LOCKSTEP_BENCH_HARNESS_LOAD_STEP_H_
#define LOCKSTEP_BENCH_HARNESS_LOAD_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/harness/step.h"
#include "datasets/loader/loader.h"

namespace lockstep::bench::harness {

class LoadStep final : public Step {
 public:
  LoadStep(const Bench& bench, std::uint32_t case_index);

  // Begins an epoch and takes the batches that prefetching had time for.
  Status Prepare() override;
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  // The loader verifies every byte; here, that the samples are the sampler's.
  void Compare(Comparison& comparison) override;
  Status TakeParts(std::vector<double>& values) override;

 private:
  Status Open();
  Status BeginEpoch();
  Status Next();

  Bench bench_;
  const plan::ShardedLoad& plan_;
  std::unique_ptr<datasets::loader::Loader> loader_;
  std::int64_t epochs_ = 0;  // begun
  datasets::loader::LoadedBatch batch_;
  Ticks loaded_ = 0;  // of the last Run
  comm::Interval interval_;
};

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_LOAD_STEP_H_
