// Whether all ranks are silent for too long in the middle of a round, which ends it: a hang is
// suspected.
#pragma once

#include <optional>

#include "core/coordinator/coordinator.h"
#include "core/coordinator/silent_look.h"

namespace lockstep::bench::harness {

class RoundSilence {
 public:
  RoundSilence(coordinator::Coordinator& coordinator, double deadline_seconds)
      : coordinator_(coordinator), deadline_seconds_(deadline_seconds) {}

  // The ranks have a new order.
  void Reset();
  // Told of every event before it is handled. Whether all are silent.
  bool OnEvent(coordinator::EventKind kind);
  // OnEvent decides with a timeout, and need not wait for it.
  bool pending() const { return look_.pending(); }
  // That which shows all silent.
  std::optional<coordinator::SilentLook::Look> TakeLook() { return look_.Take(); }

 private:
  void LookAtRanks();

  coordinator::Coordinator& coordinator_;
  const double deadline_seconds_;
  bool overdue_ = false;  // a rank was silent beyond the deadline since the last order
  coordinator::SilentLook look_;
};

}  // namespace lockstep::bench::harness
