// How links are compared. Rounds in which a rank waited for a processor too long do not count. A
// link of which too few count is busy, and is measured again alone. Slow is what is so in both
// passes. The statistics are core/stats/slow_pairs.h.
#include "bench/links/link_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/stats/stats.h"

namespace lockstep::bench::links {
namespace {

// Probability that a clean pass is suspicious of any pair, in each of its two figures.
constexpr double kFalseAlarms = 0.0015;
// Of which a median says something, when others do not count.
constexpr std::size_t kFewestRounds = 4;
constexpr double kLeastNs = 1;
constexpr std::size_t kFewestPairs = 3;
// Links of eight nodes: so many are measured one by one in a minute or two.
constexpr std::size_t kMostRetestsOfAll = 28;

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

// Parts of an iteration with a partner, as LinkStep leaves them.
constexpr double kRoundTrips = 5;
// Three of the five are as long as their median, so one of these has a third of the waits at most.
constexpr double kWaitsOfHalfATrip = 1.0 / 6;
enum LinkPart : std::size_t { kHalfRoundTrip, kSent, kRoundTripsWait, kSendingWait };

double ValueOf(const measure::CaseBook::RankRows& rows, const plan::PlannedCase& planned,
               std::size_t row, std::size_t part) {
  const std::size_t at = row * planned.parts.size() + part;
  return at < rows.parts.size() ? rows.parts[at] : 0;
}

using ByRound = std::map<std::int32_t, std::vector<double>>;

// The rounds of one figure of a pair: those that count, or, where too few do, all of them. Then
// they are shown, and not judged.
struct Series {
  std::vector<double> medians;
  std::vector<double> least;  // of these, without the waits
  bool busy = false;          // too few count
};

// The two ends of a pair: iterations that `leader` led.
class Exchanges {
 public:
  Exchanges(const measure::CaseBook& book, const plan::PlannedCase& planned, bool calibrates,
            double slow_factor)
      : book_(book),
        planned_(planned),
        calibrates_(calibrates),
        // Waits may not make a link slower than this: half of what is called slow, as factors go.
        most_wait_(1 - 1 / std::sqrt(slow_factor)) {}

  // Adds the figures of the rounds in which `leader` led, by round.
  void Collect(int leader, int other, LinkPart part, ByRound& seen, ByRound& least,
               ByRound& counted) const {
    const measure::CaseBook::RankRows& rows = RowsOf(leader);
    const LinkPart wait = part == kHalfRoundTrip ? kRoundTripsWait : kSendingWait;
    for (std::size_t row = 0; row < rows.round.size(); ++row) {
      const double figure = ValueOf(rows, planned_, row, part);
      if (figure <= 0) continue;
      seen[rows.round[row]].push_back(figure);
      const double waited =
          ValueOf(rows, planned_, row, wait) + ValueOf(RowsOf(other), planned_, row, wait);
      const double share = part == kHalfRoundTrip ? kWaitsOfHalfATrip : 1;
      least[rows.round[row]].push_back(std::max(kLeastNs, figure - share * waited));
      const double elapsed = part == kHalfRoundTrip ? 2 * kRoundTrips * figure : figure;
      // What the kernel does not tell (NaN) takes nothing away.
      if (waited > most_wait_ * elapsed) continue;
      counted[rows.round[row]].push_back(figure);
    }
  }

  Series Of(const std::vector<std::pair<int, int>>& leaders, LinkPart part) const {
    ByRound seen, least, counted;
    for (const auto& [leader, other] : leaders) Collect(leader, other, part, seen, least, counted);
    if (calibrates_ && seen.size() > 1) {
      counted.erase(seen.begin()->first);
      least.erase(least.begin());
      seen.erase(seen.begin());
    }
    Series rounds;
    rounds.busy = counted.size() < seen.size() && counted.size() < kFewestRounds;
    for (const auto& [round, values] : rounds.busy ? seen : counted) {
      rounds.medians.push_back(stats::Median(values));
      rounds.least.push_back(stats::Median(least.at(round)));
    }
    return rounds;
  }

 private:
  const measure::CaseBook::RankRows& RowsOf(int rank) const {
    return book_.ranks[static_cast<std::size_t>(rank)];
  }
  const measure::CaseBook& book_;
  const plan::PlannedCase& planned_;
  bool calibrates_;
  double most_wait_;
};

}  // namespace

std::vector<double> RoundsOf(const measure::CaseBook& book, const plan::PlannedCase& planned,
                             int rank, std::size_t part, bool calibrates) {
  std::map<std::int32_t, std::vector<double>> rounds;
  const measure::CaseBook::RankRows& rows = book.ranks[static_cast<std::size_t>(rank)];
  for (std::size_t row = 0; row < rows.round.size(); ++row) {
    const double value = ValueOf(rows, planned, row, part);
    if (value > 0) rounds[rows.round[row]].push_back(value);
  }
  if (calibrates && rounds.size() > 1) rounds.erase(rounds.begin());
  std::vector<double> medians;
  for (const auto& [round, values] : rounds) medians.push_back(stats::Median(values));
  return medians;
}

PairTable MeasuredPairs(const plan::Plan& plan, const measure::SampleBook& book, int repetition,
                        bool retest, double slow_factor) {
  PairTable table;
  const std::vector<LinkExchange> exchanges_of = ExchangesOf(plan);
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    if (exchanges_of[i].retest != retest) continue;
    const measure::CaseBook& rows = book.Book(repetition, i);
    const Exchanges exchanges(rows, plan.cases[i], !plan.iterations, slow_factor);
    for (const auto& [a, b] : exchanges_of[i].pairs) {
      PairRounds pair;
      bool measured = true;
      const auto take = [&](const Series& rounds, std::vector<double> PairFigures::*into) {
        pair.*into = rounds.medians;
        pair.least.*into = rounds.least;
        measured = measured && !rounds.medians.empty();
        pair.busy = pair.busy || rounds.busy;
      };
      take(exchanges.Of({{a, b}, {b, a}}, kHalfRoundTrip), &PairFigures::latency_ns);
      take(exchanges.Of({{a, b}}, kSent), &PairFigures::forward_ns);
      take(exchanges.Of({{b, a}}, kSent), &PairFigures::back_ns);
      if (measured) table.emplace(stats::NodePair(a, b), std::move(pair));
    }
  }
  return table;
}

std::vector<LinkGroup> LinkGroupsOf(const PairTable& table, const LinkSetting& setting) {
  std::map<std::string, int> numbers;
  LinkGroup between;
  std::vector<LinkGroup> groups;
  for (std::size_t rank = 0; rank < setting.hosts.size(); ++rank) {
    const std::string& host = setting.hosts[rank];
    if (numbers.emplace(host, static_cast<int>(numbers.size())).second) {
      between.names.push_back(host);
      between.ranks.emplace_back();
      LinkGroup& within = groups.emplace_back();
      within.of_hosts = false;
      for (std::size_t any = 0; any < setting.hosts.size(); ++any) {
        within.names.push_back(fmt::format("rank {}", any));
        within.ranks.push_back({static_cast<int>(any)});
      }
    }
    between.ranks[static_cast<std::size_t>(numbers[host])].push_back(static_cast<int>(rank));
  }
  for (const auto& [pair, rounds] : table) {
    const int a = numbers[setting.hosts[static_cast<std::size_t>(pair.first)]];
    const int b = numbers[setting.hosts[static_cast<std::size_t>(pair.second)]];
    if (a != b) {
      between.members[std::minmax(a, b)].push_back(pair);
    } else if (setting.judge_within_hosts) {
      groups[static_cast<std::size_t>(a)].members[pair].push_back(pair);
    }
  }
  groups.insert(groups.begin(), std::move(between));
  return groups;
}

namespace {

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
    }
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

namespace {

// What is compared with each other: one entry a pair of nodes, of its messages one a direction.
struct Compared {
  std::vector<stats::NodePair> nodes = {};
  std::vector<stats::PairSeries> latencies = {}, sendings = {};

  void Add(const LinkGroup& group, const stats::NodePair& ends,
           const std::vector<std::pair<stats::NodePair, const PairFigures*>>& members) {
    std::vector<const std::vector<double>*> latency, forward, back;
    for (const auto& [pair, figures] : members) {
      const auto& first = group.ranks[static_cast<std::size_t>(ends.first)];
      const bool along = std::count(first.begin(), first.end(), pair.first) > 0;
      latency.push_back(&figures->latency_ns);
      forward.push_back(along ? &figures->forward_ns : &figures->back_ns);
      back.push_back(along ? &figures->back_ns : &figures->forward_ns);
    }
    nodes.push_back(ends);
    latencies.push_back({ends.first, ends.second, Together(latency)});
    sendings.push_back({ends.first, ends.second, Together(forward)});
    sendings.push_back({ends.second, ends.first, Together(back)});
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
    return {latency.ratio, forward.ratio, back.ratio, latency.median,
            latency.slow,  forward.slow,  back.slow};
  }
};

}  // namespace

// A busy link shows how fast it is at least. So it makes no other one look slow: it is compared
// with. It is slow itself only if it is without all that its ranks waited.
PairStatuses JudgeOnce(const LinkGroup& group, const PairTable& table, double slow_factor) {
  PairStatuses pass;
  Compared all, least;
  for (const auto& [nodes, members] : group.members) {
    const bool busy = AllBusy(members, table);
    std::vector<std::pair<stats::NodePair, const PairFigures*>> figures, without_waits;
    for (const stats::NodePair& pair : members) {
      const auto found = table.find(pair);
      if (found == table.end() || found->second.busy != busy) continue;
      figures.emplace_back(pair, &found->second);
      without_waits.emplace_back(pair, &found->second.least);
    }
    if (figures.empty()) continue;
    if (busy) pass.busy.push_back(nodes);
    all.Add(group, nodes, figures);
    least.Add(group, nodes, without_waits);
  }
  // Two nodes have one link, with nothing to compare.
  if (all.nodes.size() < kFewestPairs) return pass;
  const Judged judged(all, slow_factor);
  pass.usual_latency_ns = judged.by_latency.usual;
  pass.usual_sent_ns = judged.by_sending.usual;
  std::size_t doubts = 0;
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    PairStatus standing = judged.Of(i);
    if (standing.slow() && Contains(pass.busy, all.nodes[i])) {
      if (++doubts > kMostRetestsOfAll) continue;
      standing = Judged(all.With(i, least), slow_factor).Of(i);
      if (!standing.slow()) continue;
      std::erase(pass.busy, all.nodes[i]);
    }
    pass.tested.push_back(all.nodes[i]);
    pass.standings[all.nodes[i]] = standing;
    if (standing.slow()) pass.slow.push_back(all.nodes[i]);
  }
  return pass;
}

LinkVerdicts JudgeTwice(const LinkGroup& group, const PairTable& first, const PairTable& second,
                        double slow_factor) {
  LinkVerdicts verdicts;
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
