// Who can never go on, of nodes that wait for each other: an AND/OR graph. Judges of every kind ask
// it: what a rank waits for differs from library to library, and what follows from it does not.
//
//   WaitGraph graph(4);
//   graph.WaitForAll(0, Nodes{1, 2});
//   graph.WaitForAny(1, Nodes{0, 3});
//   graph.NeverGoesOn(3);
//   graph.FindStuck()                        0, 1 and 3; 2 waits for nothing
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::verdict {

class WaitGraph {
 public:
  using Node = std::size_t;
  using Nodes = std::vector<Node>;
  // Nodes 0 to `ranks` - 1. A node waits for nothing until it is told to, once.
  explicit WaitGraph(std::size_t ranks) : missing_(ranks) {}

  // One more node, which stands for what several others wait for alike.
  Node Add();
  void WaitForAll(Node node, std::span<const Node> others);
  void WaitForAny(Node node, std::span<const Node> others);  // none: for ever
  void NeverGoesOn(Node node) { missing_[node] = 1; }

  // By node. It is stuck unless nodes that are not stuck free it: so two that wait for each other
  // are. Linear in nodes and others.
  std::vector<bool> FindStuck() const;

 private:
  void Need(Node node, std::span<const Node> others, std::size_t missing);

  std::vector<std::size_t> missing_;           // of each node: how many others must go on yet
  std::vector<std::pair<Node, Node>> needed_;  // the second waits for the first
};

}  // namespace lockstep::verdict
