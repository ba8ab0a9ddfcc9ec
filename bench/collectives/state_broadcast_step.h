// A case whose iteration is DDP's broadcast of a model's state: coalesced a type and 250 MiB, at
// most two broadcasts in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/collectives/state_broadcast.h"
#include "bench/ddp_step/model_cache.h"
#include "bench/measure/step.h"
#include "core/collective/pattern.h"
#include "core/ddp/coalesced_broadcast.h"
#include "core/ddp/launcher.h"

namespace lockstep::bench::collectives {

class StateBroadcastStep final : public measure::Step {
 public:
  StateBroadcastStep(const measure::Bench& bench, std::uint32_t case_index,
                     ddp_step::ModelCache& models);

  Status Prepare() override;
  // In place: the root's values are written again, and those of the others made impossible.
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  void Compare(measure::Comparison& comparison) override;
  Status TakeParts(std::vector<double>& values) override;

 private:
  // Tensors that travel together.
  struct Group {
    collective::Pattern pattern;
    std::vector<ddp::TensorRef> tensors;  // in the order in which they lie in the flat memory
  };

  measure::Bench bench_;
  const plan::PlannedCase& planned_;
  StateBroadcast plan_;
  ddp_step::ModelCache& models_;
  bool checks_;
  std::vector<ddp::TensorRef> tensors_;
  std::vector<Group> groups_;
  std::unique_ptr<ddp::Launcher> launcher_;
  std::unique_ptr<ddp::CoalescedBroadcast> broadcast_;
  comm::Interval interval_;  // of the last Run
};

}  // namespace lockstep::bench::collectives
