// A case whose iteration is one collective, or a sequence of them, on shared buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/measure/input_arena.h"
#include "bench/measure/step.h"
#include "core/collective/pattern.h"

namespace lockstep::bench::collectives {

class CollectiveStep final : public measure::Step {
 public:
  // A part of a result, and the inputs that its elements are made of.
  struct Part {
    std::int64_t begin = 0;      // bytes of the receive buffer
    measure::ArenaRange inputs;  // of the arena, as long as the part
    std::int64_t element = 0;    // the pattern's index of the first one
  };

  CollectiveStep(const measure::Bench& bench, std::uint32_t case_index);

  Status Prepare() override;
  Status Rewrite(bool first, bool warmup) override;
  Result<comm::Interval> Run() override;
  void Compare(measure::Comparison& comparison) override;
  measure::Meeting meeting() const override { return measure::Meeting::kRun; }

 private:
  // One operation and its place in the buffers.
  struct Slot {
    collective::Operation operation;
    collective::Buffers buffers;
    collective::Pattern pattern;
    measure::ArenaRange input;  // of the arena (out of place)
    std::vector<Part> parts;    // of the result (out of place)
    std::int64_t recv_bytes = 0;
    bool sends = true;         // this rank's input matters
    std::int64_t windows = 1;  // of the rotation
    std::uint32_t stamp = 0;   // of the whole buffer (in place)
  };

  void CoverInputs();
  Status Capture();
  void AddSlots(const plan::PlannedCase& planned);
  void RewriteSlot(Slot& slot, bool inputs);
  void RewriteInPlace(Slot& slot);
  collective::CheckReport CheckSlot(const Slot& slot) const;

  measure::Bench bench_;
  bool in_place_;
  bool checks_;
  std::int64_t iterations_per_poison_ = 1;
  device::Stream* stream_;  // of the operations
  bool graph_;              // captured when the case is first visited, and then only replayed
  std::optional<comm::CapturedCalls> captured_;
  std::vector<Slot> slots_;
};

}  // namespace lockstep::bench::collectives
