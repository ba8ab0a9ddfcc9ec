// A case whose iteration is DDP's broadcast of a model's state: coalesced a type and 250 MiB, at
// most two broadcasts in flight.
#ifndef LOCKSTEP_BENCH_HARNESS_STATE_BROADCAST_STEP_H_
#define LOCKSTEP_BENCH_HARNESS_STATE_BROADCAST_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/harness/model_shelf.h"
#include "bench/harness/step.h"
#include "core/collective/pattern.h"
#include "core/ddp/coalesced_broadcast.h"
#include "core/ddp/launcher.h"

namespace lockstep {

class StateBroadcastStep final : public Step {
 public:
  StateBroadcastStep(const Bench& bench, std::uint32_t case_index, ModelShelf& shelf);

  Status Prepare() override;
  // In place: the root's values are written again, and those of the others made impossible.
  Status Rewrite(bool first, bool warmup) override;
  Result<Interval> Run() override;
  void Compare(Comparison& comparison) override;
  Status TakeParts(std::vector<double>& values) override;

 private:
  // Tensors that travel together.
  struct Group {
    Pattern pattern;
    std::vector<TensorRef> tensors;  // in the order in which they lie in the flat memory
  };

  Bench bench_;
  const PlannedCase& planned_;
  const StateBroadcast& plan_;
  ModelShelf& shelf_;
  bool checks_;
  std::vector<TensorRef> tensors_;
  std::vector<Group> groups_;
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<CoalescedBroadcast> broadcast_;
  Interval interval_;  // of the last Run
};

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_STATE_BROADCAST_STEP_H_
