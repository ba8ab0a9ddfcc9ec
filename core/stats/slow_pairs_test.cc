// By simulation: nothing is singled out of clean matrices whose noise has heavy tails, and what was
// planted is found. Every figure is of both passes, as bench_links makes them.
#include "core/stats/slow_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/random.h"

namespace lockstep::stats {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A cluster: nodes and links differ a little for good (normal, on a logarithmic scale), rounds are
// noisy, and one visit in twenty is disturbed by up to a thousand times (Pareto, exponent 1).
class Cluster {
 public:
  Cluster(int nodes, std::uint64_t seed) : nodes_(nodes), random_(Mix64(seed)) {
    for (int node = 0; node < nodes; ++node) node_.push_back(0.03 * Normal());
    for (int i = 0; i < nodes * nodes; ++i) link_.push_back(0.06 * Normal());
  }

  void SlowLink(int a, int b, double factor) { link_[At(a, b)] += std::log(factor); }
  void SlowNode(int node, double factor) {
    node_[static_cast<std::size_t>(node)] += std::log(factor);
  }

  // From now on pairs have bad rounds, 50 times slower, each pair another part of them.
  void Contend() { contended_ = true; }

  PairSeries Measure(int a, int b, int rounds) {
    PairSeries pair{a, b, {}};
    const double bad = contended_ ? 0.2 + 0.6 * Uniform() : 0;
    const double level =
        node_[static_cast<std::size_t>(a)] + node_[static_cast<std::size_t>(b)] + link_[At(a, b)];
    for (int i = 0; i < rounds; ++i) {
      double noise = 0.15 * Normal();
      if (random_.Below(20) == 0) noise += std::log(std::min(1000.0, 1 / (1e-4 + Uniform())));
      if (Uniform() < bad) noise += std::log(50);
      pair.rounds.push_back(50e3 * std::exp(level + noise));
    }
    return pair;
  }

  std::vector<NodePair> AllPairs() const {
    std::vector<NodePair> pairs;
    for (int a = 0; a < nodes_; ++a) {
      for (int b = a + 1; b < nodes_; ++b) pairs.emplace_back(a, b);
    }
    return pairs;
  }

 private:
  std::size_t At(int a, int b) const {
    return static_cast<std::size_t>(std::min(a, b) * nodes_ + std::max(a, b));
  }
  double Uniform() { return random_.Uniform(); }
  double Normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(6.283185307179586 * Uniform());
  }

  int nodes_;
  bool contended_ = false;
  Random random_;
  std::vector<double> node_;
  std::vector<double> link_;
};

std::vector<NodePair> SlowOf(Cluster& cluster, const std::vector<NodePair>& pairs, int rounds) {
  std::vector<PairSeries> series;
  for (const auto& [a, b] : pairs) series.push_back(cluster.Measure(a, b, rounds));
  const PairStandings standings = FindSlowPairs(series, {});
  std::vector<NodePair> slow;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (standings.pairs[i].slow) slow.push_back(pairs[i]);
  }
  return slow;
}

Blame TwoPasses(Cluster& cluster, int rounds = 8) {
  const std::vector<NodePair> all = cluster.AllPairs();
  const std::vector<NodePair> suspects = SlowOf(cluster, all, rounds);
  const std::vector<NodePair> retested = ChooseRetests(all, suspects);
  std::vector<NodePair> confirmed;
  for (const NodePair& pair : SlowOf(cluster, retested, rounds)) {
    if (std::count(suspects.begin(), suspects.end(), pair) > 0) confirmed.push_back(pair);
  }
  return BlameNodesAndLinks(retested, confirmed);
}

TEST(SlowPairs, CleanMatricesWithHeavyTailsGiveNoFalseAlarm) {
  for (const int nodes : {3, 4, 8, 32}) {
    for (const int rounds : {4, 8}) {
      for (std::uint64_t seed = 0; seed < (nodes == 32 ? 200 : 1000); ++seed) {
        Cluster cluster(nodes, seed);
        const Blame blame = TwoPasses(cluster, rounds);
        EXPECT_THAT(blame.nodes, IsEmpty()) << nodes << " nodes, seed " << seed;
        EXPECT_THAT(blame.links, IsEmpty()) << nodes << " nodes, seed " << seed;
      }
    }
  }
}

TEST(SlowPairs, ContendedProcessorsGiveNoFalseAlarm) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Cluster cluster(4, seed);
    cluster.Contend();
    const Blame blame = TwoPasses(cluster, 20);
    EXPECT_THAT(blame.nodes, IsEmpty()) << "seed " << seed;
    EXPECT_THAT(blame.links, IsEmpty()) << "seed " << seed;
  }
}

TEST(SlowPairs, APlantedLinkIsFound) {
  for (const int nodes : {3, 4, 8, 32}) {
    int found = 0;
    const int trials = nodes == 32 ? 100 : 1000;
    for (int seed = 0; seed < trials; ++seed) {
      Cluster cluster(nodes, static_cast<std::uint64_t>(seed));
      const int a = seed % (nodes - 1);
      cluster.SlowLink(a, nodes - 1, nodes == 3 ? 10 : 4);  // two others tell little
      const Blame blame = TwoPasses(cluster);
      found += blame.nodes.empty() && blame.links == std::vector<NodePair>{{a, nodes - 1}};
    }
    EXPECT_GE(found, trials * 99 / 100) << nodes << " nodes";
  }
}

TEST(SlowPairs, APlantedNodeIsFoundAndNotItsLinks) {
  for (const int nodes : {4, 8, 32}) {
    int found = 0;
    const int trials = nodes == 32 ? 100 : 1000;
    for (int seed = 0; seed < trials; ++seed) {
      Cluster cluster(nodes, static_cast<std::uint64_t>(seed));
      cluster.SlowNode(seed % nodes, nodes == 4 ? 8 : 5);  // half of the pairs of four
      const Blame blame = TwoPasses(cluster);
      found += blame.links.empty() && blame.nodes == std::vector<int>{seed % nodes};
    }
    EXPECT_GE(found, trials * 99 / 100) << nodes << " nodes";
  }
}

TEST(SlowPairs, ANodeAndALinkAtTheSameTime) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Cluster cluster(10, seed);
    cluster.SlowNode(7, 6);
    cluster.SlowLink(1, 2, 6);
    const Blame blame = TwoPasses(cluster);
    found += blame.nodes == std::vector<int>{7} && blame.links == std::vector<NodePair>{{1, 2}};
  }
  EXPECT_GE(found, 198);
}

TEST(SlowPairs, LessThanTheLeastRatioIsNeverSlow) {
  std::vector<PairSeries> pairs;
  for (int i = 0; i < 40; ++i) pairs.push_back({i, i + 1, {100, 100, 100}});
  pairs[3].rounds = {149, 149, 149};
  EXPECT_FALSE(FindSlowPairs(pairs, {}).pairs[3].slow);
  pairs[3].rounds = {152, 152, 152};
  const PairStandings standings = FindSlowPairs(pairs, {});
  EXPECT_TRUE(standings.pairs[3].slow);
  EXPECT_NEAR(standings.pairs[3].ratio, 1.52, 1e-9);
  EXPECT_NEAR(standings.usual, 100, 1e-9);
  EXPECT_FALSE(FindSlowPairs(pairs, {.least_ratio = 2}).pairs[3].slow);
}

TEST(SlowPairs, FewPairsAreNotCompared) {
  EXPECT_TRUE(FindSlowPairs({}, {}).pairs.empty());
  const std::vector<PairSeries> two = {{0, 1, {1, 1}}, {1, 0, {100, 100}}};
  EXPECT_FALSE(FindSlowPairs(two, {}).pairs[1].slow);
}

TEST(SlowPairs, ANodeThatIsSlowWithAllItsPartnersIsToBlameAndElseTheLink) {
  const std::vector<NodePair> three = {{0, 1}, {0, 2}, {1, 2}};
  Blame blame = BlameNodesAndLinks(three, std::vector<NodePair>{{0, 1}});
  EXPECT_THAT(blame.nodes, IsEmpty());
  EXPECT_THAT(blame.links, ElementsAre(Pair(0, 1)));
  blame = BlameNodesAndLinks(three, std::vector<NodePair>{{0, 1}, {0, 2}});
  EXPECT_THAT(blame.nodes, ElementsAre(0));
  EXPECT_THAT(blame.links, IsEmpty());
  // Two of three partners are not enough.
  const std::vector<NodePair> four = Cluster(4, 1).AllPairs();
  blame = BlameNodesAndLinks(four, std::vector<NodePair>{{0, 1}, {0, 2}});
  EXPECT_THAT(blame.nodes, IsEmpty());
  EXPECT_THAT(blame.links, ElementsAre(Pair(0, 1), Pair(0, 2)));
}

TEST(SlowPairs, SuspectsMeetGoodPartnersAgain) {
  const std::vector<NodePair> all = Cluster(6, 1).AllPairs();
  EXPECT_THAT(ChooseRetests(all, {}), IsEmpty());
  const std::vector<NodePair> slow = {{1, 4}};
  const std::vector<NodePair> chosen = ChooseRetests(all, slow);
  const auto of = [&](int node) {
    return std::count_if(chosen.begin(), chosen.end(), [node](const NodePair& pair) {
      return pair.first == node || pair.second == node;
    });
  };
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), NodePair(1, 4)), 1);
  EXPECT_GE(of(1), 3);
  EXPECT_GE(of(4), 3);
  EXPECT_LT(chosen.size(), all.size());
  // Of a node that is slow with everybody only a part is measured again.
  std::vector<NodePair> many, slow_many;
  for (int other = 1; other < 40; ++other) slow_many.emplace_back(0, other);
  many = Cluster(40, 1).AllPairs();
  EXPECT_LT(ChooseRetests(many, slow_many).size(), 30u);
}

}  // namespace
}  // namespace lockstep::stats
