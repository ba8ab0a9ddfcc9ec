// A graph of functions, run one by one. Alternate launches begin with the first lane and with the
// last, so that a missing order between lanes shows. Joined refuses a lane whose last work nobody
// awaits, as CUDA does.
#include "core/comm/work_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace lockstep::comm {

int WorkGraph::AddLane() {
  lanes_.emplace_back();
  return static_cast<int>(lanes_.size()) - 1;
}

void WorkGraph::Add(int lane, device::Stream::Work work) {
  const auto index = static_cast<std::size_t>(lane);
  Point& after = lanes_[index];
  nodes_.push_back({index, std::move(after), std::move(work)});
  after = {nodes_.size() - 1};
}

WorkGraph::Point WorkGraph::Mark(int lane) const { return lanes_[static_cast<std::size_t>(lane)]; }

void WorkGraph::After(int lane, const Point& point) {
  Point& after = lanes_[static_cast<std::size_t>(lane)];
  after.insert(after.end(), point.begin(), point.end());
}

Status WorkGraph::Joined() const {
  std::vector<bool> before(nodes_.size(), false);  // what comes after the capture
  for (const std::size_t node : lanes_[0]) before[node] = true;
  // Nodes come after earlier ones only.
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (!before[i]) {
      return InvalidInput("a stream was captured whose last work the first stream does not await");
    }
    for (const std::size_t earlier : nodes_[i].after) before[earlier] = true;
  }
  return OkStatus();
}

Status WorkGraph::LaunchOn(void* handle) {
  auto& stream = *static_cast<device::Stream*>(handle);
  stream.Enqueue(
      [this, backwards = std::exchange(backwards_, !backwards_)] { return Run(backwards); });
  return stream.status();
}

Status WorkGraph::Run(bool backwards) const {
  std::vector<bool> done(nodes_.size(), false);
  std::vector<std::size_t> order(lanes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (backwards) std::ranges::reverse(order);
  std::vector<std::size_t> next(lanes_.size(), 0);  // where to look for the lane's next node
  const auto find = [&]() -> std::size_t {
    for (const std::size_t lane : order) {
      std::size_t& at = next[lane];
      while (at < nodes_.size() && (nodes_[at].lane != lane || done[at])) ++at;
      if (at == nodes_.size()) continue;
      const Point& after = nodes_[at].after;
      if (std::ranges::all_of(after, [&](std::size_t n) { return done[n]; })) {
        return at;
      }
    }
    LOCKSTEP_CHECK(false, "nodes come after earlier ones only");
    return 0;
  };
  for (std::size_t left = nodes_.size(); left > 0; --left) {
    const std::size_t node = find();
    LOCKSTEP_RETURN_IF_ERROR(nodes_[node].work());
    done[node] = true;
  }
  return OkStatus();
}

}  // namespace lockstep::comm
