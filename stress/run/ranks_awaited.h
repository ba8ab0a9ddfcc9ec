// Ranks that are to do something within a time, for which only time with a processor counts.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/coordinator/coordinator.h"
#include "stress/run/case_state.h"

namespace lockstep::stress::run {

class RanksAwaited {
 public:
  // Takes events until it is done, or for so long while agents are awake, or the case is over;
  // whether it was done.
  using TakeEvents = std::function<bool(double seconds, const std::function<bool()>& done)>;
  // What is told outlives it.
  RanksAwaited(coordinator::Coordinator& coordinator, const CaseState& state,
               TakeEvents take_events)
      : coordinator_(coordinator), state_(state), take_events_(std::move(take_events)) {}

  // Takes events until all ranks came, or each of the others was silent for so long with a
  // processor at hand, or the case is over; whether all came.
  bool AwaitAll(const std::vector<int>& ranks, double seconds,
                const std::function<bool(int rank)>& came);

 private:
  std::vector<double> AwakeSilences();  // s, of all ranks

  coordinator::Coordinator& coordinator_;
  const CaseState& state_;
  TakeEvents take_events_;
};

}  // namespace lockstep::stress::run
