// The graph against its definition: the greatest set of nodes in which nobody is freed from
// outside.
#include "core/verdict/wait_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "core/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

using ::testing::ElementsAre;
using Nodes = WaitGraph::Nodes;

TEST(WaitGraph, WhoWaitsForNothingGoesOnAndFreesOthers) {
  WaitGraph graph(4);
  graph.WaitForAll(0, Nodes{1, 2});
  graph.WaitForAny(1, Nodes{2, 3});
  graph.NeverGoesOn(3);
  EXPECT_THAT(graph.FindStuck(), ElementsAre(false, false, false, true));
}

TEST(WaitGraph, OneOfAllIsEnoughToKeepAndOneOfAnyToFree) {
  WaitGraph graph(4);
  graph.WaitForAll(0, Nodes{1, 3});
  graph.WaitForAny(1, Nodes{2, 3});
  graph.NeverGoesOn(3);
  EXPECT_THAT(graph.FindStuck(), ElementsAre(true, false, false, true));
}

TEST(WaitGraph, ACircleIsStuckAndSoIsWhoeverWaitsForIt) {
  WaitGraph graph(4);
  graph.WaitForAll(0, Nodes{1});
  graph.WaitForAny(1, Nodes{0, 2});
  graph.WaitForAll(2, Nodes{1});
  graph.WaitForAll(3, Nodes{2});
  EXPECT_THAT(graph.FindStuck(), ElementsAre(true, true, true, true));
}

TEST(WaitGraph, AnAddedNodeStandsForWhatSeveralNeed) {
  for (const bool gone : {false, true}) {
    WaitGraph graph(4);
    const WaitGraph::Node both = graph.Add();
    graph.WaitForAll(both, Nodes{0, 1});
    graph.WaitForAll(2, Nodes{both});
    graph.WaitForAny(3, Nodes{both, 2});
    if (gone) graph.NeverGoesOn(1);
    EXPECT_THAT(graph.FindStuck(), ElementsAre(false, gone, gone, gone, gone));
  }
}

TEST(WaitGraph, TheSameNodeNamedTwiceIsNeededOnce) {
  WaitGraph graph(3);
  graph.WaitForAll(0, Nodes{2, 2});
  graph.WaitForAny(1, Nodes{2, 2});
  EXPECT_THAT(graph.FindStuck(), ElementsAre(false, false, false));
}

// Written down a second time, as slowly as can be: a set shrinks while one in it can be freed.
struct Waiting {
  bool waits = false, all = false;
  Nodes others;
};

std::vector<bool> ByDefinition(const std::vector<Waiting>& all) {
  std::vector<bool> stuck(all.size(), true);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::size_t free = 0;
      for (const WaitGraph::Node other : all[i].others) free += stuck[other] ? 0 : 1;
      const bool met = all[i].all ? free == all[i].others.size() : free > 0;
      if (!stuck[i] || (all[i].waits && !met)) continue;
      stuck[i] = false;
      changed = true;
    }
  }
  return stuck;
}

TEST(WaitGraph, IsItsDefinitionForRandomGraphs) {
  Random random(20261127);
  std::set<std::size_t> how_many;
  for (int trial = 0; trial < 3000; ++trial) {
    const std::size_t nodes = 2 + random.Below(9);
    std::vector<Waiting> all(nodes);
    WaitGraph graph(nodes);
    for (std::size_t node = 0; node < nodes; ++node) {
      Waiting& one = all[node];
      one = {random.Below(4) != 0, random.Below(2) == 0, {}};
      if (!one.waits) continue;
      for (std::uint64_t some = random.Below(4); some > 0; --some) {
        one.others.push_back(random.Below(nodes));
      }
      if (one.others.empty()) one.all = false;  // nobody will ever free it
      if (one.others.empty())
        graph.NeverGoesOn(node);
      else if (one.all)
        graph.WaitForAll(node, one.others);
      else
        graph.WaitForAny(node, one.others);
    }
    const std::vector<bool> stuck = graph.FindStuck();
    ASSERT_EQ(stuck, ByDefinition(all)) << "trial " << trial;
    how_many.insert(static_cast<std::size_t>(std::count(stuck.begin(), stuck.end(), true)));
  }
  EXPECT_GE(how_many.size(), 9u);
}

}  // namespace
}  // namespace lockstep::verdict
