// A forward search: the faster half is taken as good, then pairs join until one lies too far off.
// With few pairs the spread is mixed with a usual one, chosen by simulation. Nodes are blamed
// before links when most of their pairs are slow.
#include "core/stats/slow_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/stats/stats.h"

namespace lockstep::stats {
namespace {

constexpr double kDeviation = 1.4826;  // of a normal distribution, by its MAD
// The spread of few pairs says little: it is mixed with what links of a machine usually differ by,
// as if so many more pairs had been seen, and widened by a factor that falls to 1 as they become
// more. Chosen by simulation (slow_pairs_test.cc).
constexpr double kUsualSpread = 0.15;
constexpr double kUsualPairs = 4;
constexpr double kFewPairs = 3;
constexpr std::size_t kComparisons = 8;  // good pairs of the second pass, more than suspects
constexpr std::size_t kFewestPairs = 3;
constexpr std::size_t kMostSlowOfANode = 6;
constexpr std::size_t kGoodPartners = 2;
constexpr double kPartOfPartners = 2.0 / 3;

double Deviation(std::span<const double> values, double center) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - center));
  return kDeviation * Median(distances);
}

// The point that a standard normal variable exceeds with probability p (Abramowitz and Stegun
// 26.2.23; error below 4.5e-4).
double NormalTail(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                 (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

double SpreadOf(std::span<const double> good, double center) {
  const auto pairs = static_cast<double>(good.size());
  const double own = Deviation(good, center);
  const double mixed = std::sqrt((pairs * own * own + kUsualPairs * kUsualSpread * kUsualSpread) /
                                 (pairs + kUsualPairs));
  return mixed * (1 + kFewPairs / pairs);
}

double BestOf(const PairSeries& pair) {
  double best = *std::ranges::min_element(pair.rounds);
  for (const double round : pair.seen) best = std::min(best, round);
  return best;
}

// What the good pairs say of any other.
class Usual {
 public:
  Usual(std::span<const double> good, std::size_t pairs, const SlowPairRules& rules)
      : center_(Median(good)),
        least_(std::log(rules.least_ratio)),
        sigmas_(NormalTail(rules.false_alarms / static_cast<double>(pairs))),
        spread_(SpreadOf(good, center_)) {}
  double center() const { return center_; }
  bool Exceeds(double value) const { return value - center_ > std::max(least_, sigmas_ * spread_); }

 private:
  double center_, least_, sigmas_, spread_;
};

// Good pairs in ascending order until one is too slow.
Usual SearchForward(std::vector<double> values, const SlowPairRules& rules) {
  std::ranges::sort(values);
  std::size_t good = (values.size() + 1) / 2;
  while (good < values.size() &&
         !Usual(std::span(values).first(good), values.size(), rules).Exceeds(values[good])) {
    ++good;
  }
  return Usual(std::span(values).first(good), values.size(), rules);
}

std::map<int, std::set<int>> PartnersOf(std::span<const NodePair> pairs) {
  std::map<int, std::set<int>> partners;
  for (const auto& [one, other] : pairs) {
    partners[one].insert(other);
    partners[other].insert(one);
  }
  return partners;
}

// Pairs of `node` with nodes that are slow with nobody, or else with few.
std::vector<NodePair> WithGoodPartners(int node, std::span<const NodePair> tested,
                                       const std::map<int, std::set<int>>& slow) {
  const auto slow_of = [&](int other) {
    const auto found = slow.find(other);
    return found == slow.end() ? std::size_t{0} : found->second.size();
  };
  std::vector<std::pair<std::size_t, NodePair>> choice;
  for (const NodePair& pair : tested) {
    if (pair.first != node && pair.second != node) continue;
    const int other = pair.first == node ? pair.second : pair.first;
    if (!slow.at(node).contains(other)) choice.emplace_back(slow_of(other), pair);
  }
  std::ranges::sort(choice);
  std::vector<NodePair> pairs;
  for (std::size_t i = 0; i < std::min(kGoodPartners, choice.size()); ++i) {
    pairs.push_back(choice[i].second);
  }
  return pairs;
}

}  // namespace

PairStandings FindSlowPairs(std::span<const PairSeries> pairs, const SlowPairRules& rules) {
  PairStandings standings;
  standings.usual = std::numeric_limits<double>::quiet_NaN();
  if (pairs.empty()) return standings;
  std::vector<double> medians, best;  // logarithms
  for (const PairSeries& pair : pairs) {
    medians.push_back(std::log(Median(pair.rounds)));
    best.push_back(std::log(BestOf(pair)));
  }
  const double usual = SearchForward(medians, rules).center();
  const Usual usual_best = SearchForward(best, rules);
  standings.usual = std::exp(usual);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool slow = pairs.size() >= kFewestPairs && usual_best.Exceeds(best[i]) &&
                      medians[i] - usual > std::log(rules.least_ratio);
    standings.pairs.push_back({std::exp(medians[i]), std::exp(medians[i] - usual), slow});
  }
  return standings;
}

Blame BlameNodesAndLinks(std::span<const NodePair> tested, std::span<const NodePair> slow) {
  std::map<int, std::set<int>> partners = PartnersOf(tested);
  std::map<int, std::set<int>> left = PartnersOf(slow);
  Blame blame;
  for (;;) {
    int worst = -1;
    double worst_part = kPartOfPartners;
    for (const auto& [node, slow_partners] : left) {
      const double part = static_cast<double>(slow_partners.size()) /
                          static_cast<double>(std::max<std::size_t>(1, partners[node].size()));
      if (slow_partners.size() < 2 || part <= worst_part) continue;
      worst = node;
      worst_part = part;
    }
    if (worst < 0) break;
    blame.nodes.push_back(worst);
    for (const int partner : partners[worst]) partners[partner].erase(worst);
    for (const int partner : left[worst]) left[partner].erase(worst);
    left.erase(worst);
  }
  for (const auto& [node, slow_partners] : left) {
    for (const int partner : slow_partners) {
      if (node < partner) blame.links.emplace_back(node, partner);
    }
  }
  std::ranges::sort(blame.nodes);
  return blame;
}

std::vector<NodePair> ChooseRetests(std::span<const NodePair> tested,
                                    std::span<const NodePair> slow) {
  const std::map<int, std::set<int>> slow_partners = PartnersOf(slow);
  std::set<NodePair> chosen;
  std::map<int, std::size_t> chosen_of;
  for (const NodePair& pair : slow) {
    if (std::max(chosen_of[pair.first], chosen_of[pair.second]) >= kMostSlowOfANode) continue;
    chosen.insert(pair);
    ++chosen_of[pair.first];
    ++chosen_of[pair.second];
  }
  const std::size_t suspects = chosen.size();
  std::set<int> ends;
  for (const NodePair& pair : chosen) ends.insert({pair.first, pair.second});
  for (const int node : ends) {
    const std::vector<NodePair> good = WithGoodPartners(node, tested, slow_partners);
    chosen.insert(good.begin(), good.end());
  }
  const std::set<NodePair> is_slow(slow.begin(), slow.end());
  for (const NodePair& pair : tested) {
    if (chosen.size() >= 2 * suspects + kComparisons) break;
    if (!is_slow.contains(pair)) chosen.insert(pair);
  }
  if (suspects == 0) return {};
  return {chosen.begin(), chosen.end()};
}

}  // namespace lockstep::stats
