// From iterations to rounds. Rounds in which a rank waited for a processor too long do not count. A
// link of which too few count is busy, and all its rounds are shown.
#include "bench/links/link_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/stats/stats.h"

namespace lockstep::bench::links {
namespace {

constexpr double kLeastNs = 1;

// Parts of an iteration with a partner, as LinkStep leaves them.
constexpr double kRoundTrips = 5;
// Three of the five are as long as their median, so one of these has a third of the waits at most.
constexpr double kWaitsOfHalfATrip = 1.0 / 6;
enum LinkPart : std::size_t {
  kHalfRoundTrip,
  kSent,
  kRoundTripsWait,
  kSendingWait,
  kKernelRoundTrip,
  kSegments,
  kLost,
};

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
  std::vector<double> least;  // of these, without the waits: the fastest iteration of each
  std::vector<double> seen;   // of all rounds: the fastest iteration of each
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
      const double without_waits = std::max(kLeastNs, figure - share * waited);
      // A rank that polls waits for processors while its message is on the way, as its kernel
      // knows.
      const double path = KernelRoundTrip(leader, other, row) * (part == kHalfRoundTrip ? 0.5 : 1);
      least[rows.round[row]].push_back(std::max(without_waits, std::min(path, figure)));
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
    // One message as fast as others' shows what a link can do; all else may slow most of a round.
    for (const auto& [round, values] : seen)
      rounds.seen.push_back(*std::ranges::min_element(values));
    for (const auto& [round, values] : rounds.busy ? seen : counted) {
      rounds.medians.push_back(stats::Median(values));
      rounds.least.push_back(*std::ranges::min_element(least.at(round)));
    }
    return rounds;
  }

  // What both kernels sent, or lost, in each round.
  std::vector<double> SumsOf(int one, int other, LinkPart part) const {
    std::map<std::int32_t, double> sums;
    for (const int rank : {one, other}) {
      const measure::CaseBook::RankRows& rows = RowsOf(rank);
      for (std::size_t row = 0; row < rows.round.size(); ++row) {
        sums[rows.round[row]] += ValueOf(rows, planned_, row, part);
      }
    }
    if (calibrates_ && sums.size() > 1) sums.erase(sums.begin());
    std::vector<double> values;
    for (const auto& [round, sum] : sums) values.push_back(sum);
    return values;
  }

  bool WaitsKnown(int one, int other) const {
    for (const int rank : {one, other}) {
      const measure::CaseBook::RankRows& rows = RowsOf(rank);
      for (std::size_t row = 0; row < rows.round.size(); ++row) {
        if (std::isnan(ValueOf(rows, planned_, row, kRoundTripsWait))) return false;
      }
    }
    return true;
  }

 private:
  // The least that both kernels know, 0: neither does.
  double KernelRoundTrip(int one, int other, std::size_t row) const {
    const double least = std::fmin(ValueOf(RowsOf(one), planned_, row, kKernelRoundTrip),
                                   ValueOf(RowsOf(other), planned_, row, kKernelRoundTrip));
    return std::isnan(least) ? 0 : least;
  }
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
        pair.seen.*into = rounds.seen;
        measured = measured && !rounds.medians.empty();
        pair.busy = pair.busy || rounds.busy;
      };
      take(exchanges.Of({{a, b}, {b, a}}, kHalfRoundTrip), &PairFigures::latency_ns);
      take(exchanges.Of({{a, b}}, kSent), &PairFigures::forward_ns);
      take(exchanges.Of({{b, a}}, kSent), &PairFigures::back_ns);
      pair.waits_known = exchanges.WaitsKnown(a, b);
      pair.segments = exchanges.SumsOf(a, b, kSegments);
      pair.lost = exchanges.SumsOf(a, b, kLost);
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

}  // namespace lockstep::bench::links
