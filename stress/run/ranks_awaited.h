// Ranks that are to do something within a time, for which only time with a processor counts.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/coordinator/coordinator.h"
#include "stress/run/case_state.h"

namespace lockstep::stress::run {

// For how long ranks were silent since it was made, with a processor at hand.
class SilencesSince {
 public:
  explicit SilencesSince(coordinator::Coordinator& coordinator);
  // Until each of `ranks` was silent for so long; 0: they were.
  double SecondsLeft(const std::vector<int>& ranks, double seconds);

 private:
  std::vector<double> Now() const;  // s, of all ranks, in the silence that each is in

  coordinator::Coordinator& coordinator_;
  std::vector<double> before_;
};

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
  coordinator::Coordinator& coordinator_;
  const CaseState& state_;
  TakeEvents take_events_;
};

}  // namespace lockstep::stress::run
