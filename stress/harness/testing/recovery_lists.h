// Test material: what happens in a recovery of three ranks, of which rank 1 was lost.
#ifndef LOCKSTEP_STRESS_HARNESS_TESTING_RECOVERY_LISTS_H_
#define LOCKSTEP_STRESS_HARNESS_TESTING_RECOVERY_LISTS_H_

#include <csignal>
#include <string>
#include <vector>

#include "core/launch/testing/fake_fleet.h"
#include "core/verdict/history.h"
#include "stress/harness/testing/conduct.h"

namespace lockstep {

inline constexpr char kGaveUp[] = "gloo: aborted";
inline const StressScript kShrink = {.ranks = 3, .recovery = "shrink"};
inline const StressScript kRestart = {.ranks = 3, .recovery = "restart"};

// Gave up all_reduce 50 of the first communicator; then did 10 of the second and left.
inline History Fails(int rank) { return After49(rank).FailsIn(AllReduce()); }
inline History Done(int rank) { return Fails(rank).On(1).Does(AllReduce(), 10).Leaves(0); }
inline History Killed(int rank) { return At50(rank).Signalled(SIGKILL); }

inline FleetSteps KilledIn50() {
  return {Ranks({At50(0), Killed(1), At50(2)}), After(0.1), Signalled(1, SIGKILL)};
}
// Both survivors hear the order and give up: commands kOrders of conductor_rebuild_test.cc.
inline FleetSteps GivenUp() {
  return Steps(When("send 2 abort 0"), After(0.01), Aborted(0, 0), Raised(0, kGaveUp, 4),
               Ranks({Fails(0), Killed(1), Fails(2)}), Aborted(2, 0), Raised(2, kGaveUp, 3));
}
inline FleetSteps Rebuilt(const std::vector<int>& ranks, int generation, double at_seconds) {
  FleetSteps steps = {When("send"), After(0.02)};
  const int size = static_cast<int>(ranks.size());
  for (int place = 0; place < size; ++place) {
    const int rank = ranks[static_cast<std::size_t>(place)];
    Append(steps, Connecting(rank, generation, place, size));
    Append(steps, Connected(rank, generation, at_seconds));
  }
  return steps;
}
inline FleetSteps Over(std::vector<RankEvidence> evidence, const std::vector<int>& ranks) {
  FleetSteps steps = {Ranks(std::move(evidence))};
  for (const int rank : ranks) Append(steps, Steps(Finished(rank), Exited(rank, 0)));
  return steps;
}

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_HARNESS_TESTING_RECOVERY_LISTS_H_
