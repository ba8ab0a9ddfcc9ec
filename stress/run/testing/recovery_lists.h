// Test material: what happens in a recovery of three ranks, of which rank 1 was lost.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "core/coordinator/testing/fake_coordinator.h"
#include "core/verdict/testing/history.h"
#include "stress/run/testing/conduct.h"

namespace lockstep::stress::run {

inline constexpr char kGaveUp[] = "gloo: aborted";
inline const StressScript kShrink = {.ranks = 3, .recovery = "shrink"};
inline const StressScript kRestart = {.ranks = 3, .recovery = "restart"};

// Gave up all_reduce 50 of the first communicator; then did 10 of the second and left.
inline verdict::History Fails(int rank) {
  return verdict::After49(rank).FailsIn(verdict::AllReduce());
}
inline verdict::History Done(int rank) {
  return Fails(rank).On(1).Does(verdict::AllReduce(), 10).Leaves(0);
}
inline verdict::History Killed(int rank) { return verdict::At50(rank).Signalled(SIGKILL); }

inline coordinator::Script KilledIn50() {
  return {coordinator::Ranks({verdict::At50(0), Killed(1), verdict::At50(2)}),
          coordinator::After(0.1), coordinator::Signalled(1, SIGKILL)};
}
// Both survivors hear the order and give up.
inline coordinator::Script GivenUp() {
  return coordinator::Steps(coordinator::When("send 2 abort 0"), coordinator::After(0.01),
                            Aborted(0, 0), Raised(0, kGaveUp, 4),
                            coordinator::Ranks({Fails(0), Killed(1), Fails(2)}), Aborted(2, 0),
                            Raised(2, kGaveUp, 3));
}
inline coordinator::Script Rebuilt(const std::vector<int>& ranks, int generation,
                                   double at_seconds) {
  coordinator::Script steps = {coordinator::When("send"), coordinator::After(0.02)};
  const int size = static_cast<int>(ranks.size());
  for (int place = 0; place < size; ++place) {
    const int rank = ranks[static_cast<std::size_t>(place)];
    coordinator::Append(steps, Connecting(rank, generation, place, size));
    coordinator::Append(steps, Connected(rank, generation, at_seconds));
  }
  return steps;
}
inline coordinator::Script Over(std::vector<verdict::RankEvidence> evidence,
                                const std::vector<int>& ranks) {
  coordinator::Script steps = {coordinator::Ranks(std::move(evidence))};
  for (const int rank : ranks)
    coordinator::Append(steps, coordinator::Steps(Finished(rank), coordinator::Exited(rank, 0)));
  return steps;
}

}  // namespace lockstep::stress::run
