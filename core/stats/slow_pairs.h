// Which pairs of nodes are slower than the others, and whether a node or only a link is to blame.
// Pure.
//
// The method is that of Google's Cluster Health Scanner: all pairs first; then whatever is
// suspicious again, with partners that are known to be good, so that a bad node is told from a bad
// link. Only what both passes show is a finding.
#pragma once

#include <span>
#include <utility>
#include <vector>

namespace lockstep::stats {

// What one pair cost (a time, > 0; more is slower), one median a round. `from` and `to` are nodes,
// numbered from 0; a pair that costs the same in both directions is listed once.
struct PairSeries {
  int from = 0;
  int to = 0;
  std::vector<double> rounds;
  // All rounds, also those that do not count because something else made them slower. A pair is at
  // least as good as the best of them. Empty: all count.
  std::vector<double> seen = {};
};

struct SlowPairRules {
  double least_ratio = 1.5;     // to the usual cost: less is never slow
  double false_alarms = 0.003;  // probability that any of the pairs of a clean pass is slow
};

struct PairStanding {
  double median = 0;  // of its rounds
  double ratio = 1;   // to the usual cost
  bool slow = false;
};

struct PairStandings {
  double usual = 0;  // median cost of the pairs that are not slow; NaN: there are no pairs
  std::vector<PairStanding> pairs;
};

// A forward search over the logarithms of the best rounds: the faster half is taken as good, then
// pair after pair in ascending order, until one lies too far from the median of the good ones, in
// units of their spread (median absolute deviation); Bonferroni over the pairs. Best rounds,
// because where processors are contended for a pair has good rounds and bad ones; a slow link is
// never fast. The median must exceed the usual one by the least ratio too. Fewer than three pairs
// have nothing to be compared with; up to half of them can be slow.
PairStandings FindSlowPairs(std::span<const PairSeries> pairs, const SlowPairRules& rules);

using NodePair = std::pair<int, int>;  // the lower number first

struct Blame {
  std::vector<int> nodes;       // slow with more than two thirds of their partners, at least two
  std::vector<NodePair> links;  // slow, and neither end is such a node
};

// `tested` pairs, of which `slow` are slow: both without duplicates.
Blame BlameNodesAndLinks(std::span<const NodePair> tested, std::span<const NodePair> slow);

// What the second pass measures: slow pairs (of a node at most six), pairs of their ends with
// partners that are good, and as many other good pairs as are needed for comparison.
std::vector<NodePair> ChooseRetests(std::span<const NodePair> tested,
                                    std::span<const NodePair> slow);

}  // namespace lockstep::stats
