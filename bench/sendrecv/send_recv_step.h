// A case whose iteration is a message to the right neighbour and one from the left.
#pragma once

#include <cstdint>

#include "bench/measure/input_arena.h"
#include "bench/measure/step.h"
#include "core/collective/pattern.h"

namespace lockstep::bench::sendrecv {

// Both are posted before either is awaited: in a ring that sends first, all ranks would wait.
class SendRecvStep final : public measure::Step {
 public:
  SendRecvStep(const measure::Bench& bench, std::uint32_t case_index);

  Status Prepare() override;
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  void Compare(measure::Comparison& comparison) override;

 private:
  collective::Pattern PatternOf(const collective::Operation& operation) const;

  measure::Bench bench_;
  collective::Operation receive_;
  collective::Operation send_;
  device::Stream* receiving_;  // beside the caller where the library has only blocking calls
  measure::ArenaRange input_;
  std::int64_t windows_;
};

}  // namespace lockstep::bench::sendrecv
