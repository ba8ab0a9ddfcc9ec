// Nodes that wait for nothing go on, and so does whomever they free, until nothing changes. Whoever
// is left is stuck.
#include "core/verdict/wait_graph.h"

namespace lockstep::verdict {

WaitGraph::Node WaitGraph::Add() {
  missing_.push_back(0);
  return missing_.size() - 1;
}

void WaitGraph::Need(Node node, std::span<const Node> others, std::size_t missing) {
  for (const Node other : others) needed_.emplace_back(other, node);
  missing_[node] = missing;
}

void WaitGraph::WaitForAll(Node node, std::span<const Node> others) {
  Need(node, others, others.size());
}

void WaitGraph::WaitForAny(Node node, std::span<const Node> others) { Need(node, others, 1); }

std::vector<bool> WaitGraph::FindStuck() const {
  const std::size_t nodes = missing_.size();
  // Who waits for a node: a stretch of `waiting`, which begins at `begin` of the node.
  std::vector<std::size_t> begin(nodes + 1);
  for (const auto& [other, node] : needed_) ++begin[other + 1];
  for (std::size_t i = 0; i < nodes; ++i) begin[i + 1] += begin[i];
  std::vector<Node> waiting(needed_.size());
  std::vector<std::size_t> next = begin;
  for (const auto& [other, node] : needed_) waiting[next[other]++] = node;

  std::vector<std::size_t> missing = missing_;
  std::vector<Node> freed;
  for (Node node = 0; node < nodes; ++node) {
    if (missing[node] == 0) freed.push_back(node);
  }
  std::vector<bool> stuck(nodes, true);
  while (!freed.empty()) {
    const Node other = freed.back();
    freed.pop_back();
    stuck[other] = false;
    for (std::size_t i = begin[other]; i < begin[other + 1]; ++i) {
      const Node node = waiting[i];
      if (missing[node] > 0 && --missing[node] == 0) freed.push_back(node);
    }
  }
  return stuck;
}

}  // namespace lockstep::verdict
