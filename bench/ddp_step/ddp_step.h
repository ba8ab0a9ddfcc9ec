// A case whose iteration is a training step under DistributedDataParallel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/ddp_step/cases.h"
#include "bench/ddp_step/model_cache.h"
#include "bench/ddp_step/untraced_step.h"
#include "bench/measure/step.h"
#include "core/ddp/engine.h"

namespace lockstep::bench::ddp_step {

class DdpStepRunner final : public measure::Step {
 public:
  DdpStepRunner(const measure::Bench& bench, std::uint32_t case_index, ModelCache& models);

  // The first time: DDP's constructor, and iterations until the buckets are rebuilt (and PowerSGD
  // compresses); and the capture, if the step is to be replayed.
  Status Prepare() override;
  // Where the first iteration is what counts, every one gets a new engine.
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  void Compare(measure::Comparison& comparison) override;
  Status TakeParts(std::vector<double>& values) override;

 private:
  Status Construct();
  Status Settle();
  Status Capture();
  // Waits for the last iteration, whose times are kept where there is a timeline.
  Status FinishIteration();
  // Of so many micro-batches; only the last one's gradients travel.
  Status Iterate(std::int64_t micro_batches);
  Status TakeTimes();
  Result<comm::Interval> RunCalled();
  // The gradient that every rank must have: the mean over ranks of the sum over micro-batches.
  double Expected(int param, std::int64_t element) const;
  void CompareBucket(std::size_t index, measure::Comparison& comparison) const;
  // Elements [begin, end) of the parameter; the first wrong one is located at `offset` + its index.
  void CompareGradient(int param, std::int64_t begin, std::int64_t end, double tolerance,
                       std::int64_t offset, measure::Comparison::Located& located,
                       measure::Comparison& comparison) const;

  measure::Bench bench_;
  const plan::PlannedCase& planned_;
  DdpStep plan_;
  ModelCache& models_;
  bool checks_;
  bool low_rank_;
  ddp::ManifestModel* model_ = nullptr;
  std::optional<UntracedStep> untraced_;  // without a timeline; outlives the engine
  std::unique_ptr<ddp::Engine> engine_;
  std::vector<ddp::StepTimes> steps_;  // of the last iteration, one a micro-batch
  Ticks launched_ = 0;                 // in the last iteration: the host had nothing left to launch
  comm::Interval interval_;            // of the last iteration
  std::int64_t newest_input_ = 0;      // that gradients are of
  std::int64_t compared_ = 0;  // iterations; the first one wholly, later ones a window at a time
};

}  // namespace lockstep::bench::ddp_step
