// Both passes are judged by the statistics of core/stats/slow_pairs.h. Slow is what is so in both;
// a link whose ranks waited for processors is slow only where its kernels, which do not wait,
// agree.
#include "bench/links/link_verdicts.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/stats/stats.h"

namespace lockstep::bench::links {
namespace {

// Probability that a clean pass is suspicious of any pair, in each of its two figures.
constexpr double kFalseAlarms = 0.0015;
constexpr std::size_t kFewestPairs = 3;
// Links of eight nodes: so many are measured one by one in a minute or two.
constexpr std::size_t kMostRetestsOfAll = 28;
// Of segments, by both kernels of a link; a healthy network loses less.
constexpr double kFewestLost = 5;
constexpr double kLeastLoss = 0.003;
constexpr double kLossOverOthers = 10;

// The k-th value of several pairs, as one: their median.
std::vector<double> Together(const std::vector<const std::vector<double>*>& series) {
  std::size_t rounds = series.front()->size();
  for (const auto* each : series) rounds = std::min(rounds, each->size());
  std::vector<double> values;
  for (std::size_t k = 0; k < rounds; ++k) {
    std::vector<double> all;
    for (const auto* each : series) all.push_back((*each)[k]);
    values.push_back(stats::Median(all));
  }
  return values;
}

// Whether of those that were measured all are busy.
bool AllBusy(const std::vector<stats::NodePair>& members, const PairTable& table) {
  return std::all_of(members.begin(), members.end(), [&](const stats::NodePair& pair) {
    const auto found = table.find(pair);
    return found == table.end() || found->second.busy;
  });
}

bool Contains(const std::vector<stats::NodePair>& pairs, const stats::NodePair& pair) {
  return std::count(pairs.begin(), pairs.end(), pair) > 0;
}

bool HasGoodPartner(int node, const PairStatuses& pass) {
  return std::any_of(pass.tested.begin(), pass.tested.end(), [&](const stats::NodePair& pair) {
    return (pair.first == node || pair.second == node) && !Contains(pass.slow, pair);
  });
}

// Measured, and neither slow nor busy.
bool IsGood(const stats::NodePair& pair, const PairStatuses& pass) {
  return Contains(pass.tested, pair) && !Contains(pass.slow, pair) && !Contains(pass.busy, pair);
}

// The earlier or the later rounds of each link, where these are enough: a pass like any other.
PairTable HalfOf(const PairTable& table, bool later) {
  PairTable half;
  for (const auto& [pair, rounds] : table) {
    PairRounds part;
    part.busy = rounds.busy;
    bool enough = true;
    const auto cut = [&](const std::vector<double>& all, std::vector<double>& into) {
      const auto middle = all.begin() + std::ssize(all) / 2;
      into.assign(later ? middle : all.begin(), later ? all.end() : middle);
      enough = enough && into.size() >= kFewestRounds;
    };
    for (const auto series :
         {&PairFigures::latency_ns, &PairFigures::forward_ns, &PairFigures::back_ns}) {
      cut(rounds.*series, part.*series);
      cut(rounds.least.*series, part.least.*series);
      cut(rounds.seen.*series, part.seen.*series);
    }
    cut(rounds.segments, part.segments);
    cut(rounds.lost, part.lost);
    if (enough) half.emplace(pair, std::move(part));
  }
  return half;
}

std::vector<stats::NodePair> UndecidedOf(const PairStatuses& first, const PairStatuses& second) {
  std::vector<stats::NodePair> undecided;
  // Two links, or one, have nothing to compare, busy or not.
  if (first.standings.empty()) return undecided;
  for (const stats::NodePair& pair : first.busy) {
    if (!IsGood(pair, second)) undecided.push_back(pair);
  }
  for (const stats::NodePair& pair : first.slow) {
    if (Contains(second.busy, pair)) undecided.push_back(pair);
  }
  // Beside busy ones a link may look usual that is not.
  for (const stats::NodePair& pair : second.slow) {
    const bool known = Contains(first.slow, pair) || Contains(first.busy, pair);
    if (!known && !first.busy.empty()) undecided.push_back(pair);
  }
  return undecided;
}

// What is compared with each other: one entry a pair of nodes, of its messages one a direction.
struct Compared {
  std::vector<stats::NodePair> nodes = {};
  std::vector<stats::PairSeries> latencies = {}, sendings = {};

  // A pair of ranks between two nodes; what its rounds took, and what all of them took.
  struct Member {
    stats::NodePair ranks;
    const PairFigures& counted;
    const PairFigures& seen;
  };
  void Add(const LinkGroup& group, const stats::NodePair& ends,
           const std::vector<Member>& members) {
    const auto& first = group.ranks[static_cast<std::size_t>(ends.first)];
    using Figure = std::vector<double> PairFigures::*;
    const auto series = [&](int from, int to, Figure along, Figure against) {
      std::vector<const std::vector<double>*> counted, seen;
      for (const Member& member : members) {
        const bool same = std::count(first.begin(), first.end(), member.ranks.first) > 0;
        counted.push_back(&(member.counted.*(same ? along : against)));
        seen.push_back(&(member.seen.*(same ? along : against)));
      }
      return stats::PairSeries{from, to, Together(counted), Together(seen)};
    };
    const Figure latency = &PairFigures::latency_ns;
    const Figure forward = &PairFigures::forward_ns, back = &PairFigures::back_ns;
    nodes.push_back(ends);
    latencies.push_back(series(ends.first, ends.second, latency, latency));
    sendings.push_back(series(ends.first, ends.second, forward, back));
    sendings.push_back(series(ends.second, ends.first, back, forward));
  }
  // As it is, but for one entry, of which all waits are taken away.
  Compared With(std::size_t i, const Compared& least) const {
    Compared all = *this;
    all.latencies[i] = least.latencies[i];
    for (const std::size_t way : {2 * i, 2 * i + 1}) all.sendings[way] = least.sendings[way];
    return all;
  }
};

struct Judged {
  stats::PairStandings by_latency, by_sending;

  Judged(const Compared& all, double slow_factor)
      : by_latency(stats::FindSlowPairs(all.latencies, {slow_factor, kFalseAlarms})),
        by_sending(stats::FindSlowPairs(all.sendings, {slow_factor, kFalseAlarms})) {}
  PairStatus Of(std::size_t i) const {
    const stats::PairStanding& latency = by_latency.pairs[i];
    const stats::PairStanding& forward = by_sending.pairs[2 * i];
    const stats::PairStanding& back = by_sending.pairs[2 * i + 1];
    return {latency.ratio,     forward.ratio, back.ratio,   latency.median,
            /*at_most=*/false, latency.slow,  forward.slow, back.slow};
  }
};

// What the kernels sent and lost on a link, all its pairs of ranks together.
struct Segments {
  double sent = 0;
  double lost = 0;

  Segments& operator+=(const Segments& other) {
    sent += other.sent;
    lost += other.lost;
    return *this;
  }
  double share() const { return sent > 0 ? lost / sent : 0; }
};

Segments SegmentsOf(const std::vector<stats::NodePair>& members, const PairTable& table) {
  Segments segments;
  for (const stats::NodePair& pair : members) {
    const auto found = table.find(pair);
    if (found == table.end()) continue;
    const auto& [sent, lost] = std::tie(found->second.segments, found->second.lost);
    segments += {std::accumulate(sent.begin(), sent.end(), 0.0),
                 std::accumulate(lost.begin(), lost.end(), 0.0)};
  }
  return segments;
}

// All links as they were seen, and without the waits of their ranks. Of the busy ones too few
// rounds count.
std::vector<stats::NodePair> Gather(const LinkGroup& group, const PairTable& table, Compared& all,
                                    Compared& least) {
  std::vector<stats::NodePair> busy_links;
  for (const auto& [nodes, members] : group.members) {
    const bool busy = AllBusy(members, table);
    std::vector<Compared::Member> figures, without_waits;
    for (const stats::NodePair& pair : members) {
      const auto found = table.find(pair);
      if (found == table.end() || found->second.busy != busy) continue;
      const PairRounds& rounds = found->second;
      figures.push_back({pair, rounds, rounds.seen});
      without_waits.push_back({pair, rounds.least, rounds.least});
    }
    if (figures.empty()) continue;
    if (busy) busy_links.push_back(nodes);
    all.Add(group, nodes, figures);
    least.Add(group, nodes, without_waits);
  }
  return busy_links;
}

// It loses what the others do not. No wait for a processor loses a segment.
bool Loses(const stats::NodePair& link, const LinkGroup& group, const PairTable& table) {
  Segments others;
  for (const auto& [nodes, members] : group.members) {
    if (nodes != link) others += SegmentsOf(members, table);
  }
  const Segments own = SegmentsOf(group.members.at(link), table);
  return own.lost >= kFewestLost && own.share() >= kLeastLoss &&
         own.share() >= kLossOverOthers * others.share();
}

// One fast message acquits no link that loses others.
PairStatus ByMedians(PairStatus standing, double slow_factor) {
  standing.slow_latency = standing.latency_ratio > slow_factor;
  standing.slow_forward = standing.forward_ratio > slow_factor;
  standing.slow_back = standing.back_ratio > slow_factor;
  return standing;
}

// Links that look usual with all their waits, beside a majority that is known, are usual.
void SettleBusy(const std::vector<stats::NodePair>& all, PairStatuses& pass) {
  const std::size_t known = all.size() - pass.busy.size();
  if (known < kFewestPairs || 2 * known <= all.size()) return;
  std::erase_if(pass.busy, [&](const stats::NodePair& nodes) {
    return Contains(pass.tested, nodes) && !Contains(pass.slow, nodes);
  });
}

}  // namespace

std::vector<stats::NodePair> RetestsOf(const PairStatuses& pass) {
  std::vector<stats::NodePair> measured = pass.tested;
  for (const stats::NodePair& pair : pass.busy) {
    if (!Contains(measured, pair)) measured.push_back(pair);
  }
  const bool all =
      !pass.busy.empty() && measured.size() >= kFewestPairs && measured.size() <= kMostRetestsOfAll;
  return all ? measured : stats::ChooseRetests(pass.tested, pass.slow);
}

// A busy link shows how fast it is at least. So it makes no other one look slow: it is compared
// with. It is slow itself only if it is without all that its ranks waited, or if its kernels agree.
PairStatuses JudgeOnce(const LinkGroup& group, const PairTable& table, double slow_factor) {
  PairStatuses pass;
  Compared all, least;
  pass.busy = Gather(group, table, all, least);
  // Two nodes have one link, with nothing to compare.
  if (all.nodes.size() < kFewestPairs) return pass;
  const Judged judged(all, slow_factor);
  pass.usual_latency_ns = judged.by_latency.usual;
  pass.usual_sent_ns = judged.by_sending.usual;
  std::size_t doubts = 0;
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    PairStatus standing = judged.Of(i);
    const PairStatus by_medians = ByMedians(standing, slow_factor);
    const bool loses = by_medians.slow() && Loses(all.nodes[i], group, table);
    if (loses) standing = by_medians;
    if (standing.slow() && Contains(pass.busy, all.nodes[i])) {
      if (++doubts > kMostRetestsOfAll) continue;
      if (!loses) {
        standing = Judged(all.With(i, least), slow_factor).Of(i);
        standing.at_most = true;
      }
      if (!standing.slow()) continue;
      std::erase(pass.busy, all.nodes[i]);
    }
    pass.tested.push_back(all.nodes[i]);
    pass.standings[all.nodes[i]] = standing;
    if (standing.slow()) pass.slow.push_back(all.nodes[i]);
  }
  SettleBusy(all.nodes, pass);
  return pass;
}

LinkVerdicts JudgeTwice(const LinkGroup& group, const PairTable& first, const PairTable& second,
                        double slow_factor) {
  LinkVerdicts verdicts;
  for (const PairTable* table : {&first, &second}) {
    for (const auto& [pair, rounds] : *table)
      verdicts.waits_known = verdicts.waits_known && rounds.waits_known;
  }
  verdicts.first = JudgeOnce(group, first, slow_factor);
  verdicts.second = JudgeOnce(group, second, slow_factor);
  const PairStatuses early = JudgeOnce(group, HalfOf(second, false), slow_factor);
  const PairStatuses late = JudgeOnce(group, HalfOf(second, true), slow_factor);
  for (const stats::NodePair& pair : verdicts.second.slow) {
    const bool twice_alone = Contains(early.slow, pair) && Contains(late.slow, pair);
    if (Contains(verdicts.first.slow, pair) ||
        (Contains(verdicts.first.busy, pair) && twice_alone)) {
      verdicts.confirmed.push_back(pair);
    }
  }
  verdicts.undecided = UndecidedOf(verdicts.first, verdicts.second);
  std::erase_if(verdicts.undecided,
                [&](const stats::NodePair& pair) { return Contains(verdicts.confirmed, pair); });
  // Of whom it is not known how fast it is with a partner: that is no slow partner.
  std::vector<stats::NodePair> partners = verdicts.second.tested;
  for (const stats::NodePair& pair : verdicts.second.busy) {
    if (!Contains(partners, pair)) partners.push_back(pair);
  }
  verdicts.blame = stats::BlameNodesAndLinks(partners, verdicts.confirmed);
  // A link is to blame only where its ends are known to be fast with others.
  std::erase_if(verdicts.blame.links, [&](const stats::NodePair& link) {
    if (HasGoodPartner(link.first, verdicts.second) &&
        HasGoodPartner(link.second, verdicts.second)) {
      return false;
    }
    verdicts.undecided.push_back(link);
    return true;
  });
  return verdicts;
}

}  // namespace lockstep::bench::links
