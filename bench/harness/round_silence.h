// Whether all ranks are silent for too long in the middle of a round, which ends it: a hang is
// suspected.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/coordinator/coordinator.h"

namespace lockstep::bench::harness {

class RoundSilence {
 public:
  using Look = std::vector<verdict::RankEvidence>;

  RoundSilence(coordinator::Coordinator& coordinator, double deadline_seconds)
      : coordinator_(coordinator), deadline_seconds_(deadline_seconds) {}

  // The ranks have a new order.
  void Reset();
  // Told of every event before it is handled. Whether all are silent: nothing has come since the
  // look that shows it.
  bool OnEvent(coordinator::EventKind kind);
  // OnEvent decides with a timeout, and need not wait for it.
  bool pending() const { return look_.has_value(); }
  // That which shows all silent, with stacks.
  std::optional<Look> TakeLook() { return std::exchange(look_, std::nullopt); }

 private:
  void LookAtRanks();

  coordinator::Coordinator& coordinator_;
  const double deadline_seconds_;
  bool overdue_ = false;  // a rank was silent beyond the deadline since the last order
  std::optional<Look> look_;
};

}  // namespace lockstep::bench::harness
