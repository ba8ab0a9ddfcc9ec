#include "core/coordinator/lost_hosts.h"

#include <algorithm>
#include <vector>

namespace lockstep::coordinator {
namespace {

constexpr double kLossSeconds = 0.2;

}  // namespace

bool HostsAreLost(const Coordinator& coordinator) {
  const std::vector<verdict::RankPlace> places = coordinator.places();
  return std::ranges::any_of(
      places, [](const verdict::RankPlace& place) { return place.loss != Loss::kNone; });
}

bool AwaitLostHosts(Coordinator& coordinator, const std::function<void(const Event&)>& handle) {
  const Deadline deadline = Deadline::AfterSeconds(kLossSeconds);
  while (!HostsAreLost(coordinator) && !deadline.Passed()) handle(coordinator.Next(deadline));
  return HostsAreLost(coordinator);
}

}  // namespace lockstep::coordinator
