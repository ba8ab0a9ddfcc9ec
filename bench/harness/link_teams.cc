#include "bench/harness/link_teams.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/stats/stats.h"

namespace lockstep {
namespace {

// Probability that a clean pass is suspicious of any pair, in each of its two figures.
constexpr double kFalseAlarms = 0.0015;

// The k-th value of several pairs, as one: their median.
std::vector<double> Together(const std::vector<const std::vector<double>*>& series) {
  std::size_t rounds = series.front()->size();
  for (const auto* each : series) rounds = std::min(rounds, each->size());
  std::vector<double> values;
  for (std::size_t k = 0; k < rounds; ++k) {
    std::vector<double> all;
    for (const auto* each : series) all.push_back((*each)[k]);
    values.push_back(Median(all));
  }
  return values;
}

}  // namespace

std::vector<double> RoundsOf(const CaseBook& book, const PlannedCase& planned,
                             const std::vector<int>& ranks, std::size_t part, bool calibrates) {
  std::map<std::int32_t, std::vector<double>> rounds;
  for (const int rank : ranks) {
    const CaseBook::RankRows& rows = book.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t row = 0; row < rows.round.size(); ++row) {
      const std::size_t at = row * planned.parts.size() + part;
      if (at >= rows.parts.size() || rows.parts[at] <= 0) continue;
      rounds[rows.round[row]].push_back(rows.parts[at]);
    }
  }
  if (calibrates && rounds.size() > 1) rounds.erase(rounds.begin());
  std::vector<double> medians;
  for (const auto& [round, values] : rounds) medians.push_back(Median(values));
  return medians;
}

PairTable MeasuredPairs(const Plan& plan, const SampleBook& book, int repetition, bool retest) {
  PairTable table;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const auto* links = std::get_if<LinkExchange>(&plan.cases[i].step);
    if (links == nullptr || links->retest != retest) continue;
    const CaseBook& rows = book.Book(repetition, i);
    for (const auto& [a, b] : links->pairs) {
      const auto rounds = [&](const std::vector<int>& ranks, std::size_t part) {
        return RoundsOf(rows, plan.cases[i], ranks, part, !plan.iterations);
      };
      PairRounds pair{rounds({a, b}, 0), rounds({a}, 1), rounds({b}, 1)};
      const bool both = !pair.forward_ns.empty() && !pair.back_ns.empty();
      if (both) table.emplace(NodePair(a, b), std::move(pair));
    }
  }
  return table;
}

std::vector<Team> TeamsOf(const PairTable& table, const LinkSetting& setting) {
  std::map<std::string, int> numbers;
  Team between;
  std::vector<Team> teams;
  for (std::size_t rank = 0; rank < setting.hosts.size(); ++rank) {
    const std::string& host = setting.hosts[rank];
    if (numbers.emplace(host, static_cast<int>(numbers.size())).second) {
      between.names.push_back(host);
      between.ranks.emplace_back();
      Team& within = teams.emplace_back();
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
      teams[static_cast<std::size_t>(a)].members[pair].push_back(pair);
    }
  }
  teams.insert(teams.begin(), std::move(between));
  return teams;
}

Standings JudgeOnce(const Team& team, const PairTable& table, double slow_factor) {
  Standings pass;
  std::vector<PairSeries> latencies, sendings;
  for (const auto& [nodes, members] : team.members) {
    std::vector<const std::vector<double>*> latency, forward, back;
    for (const NodePair& pair : members) {
      const auto found = table.find(pair);
      if (found == table.end()) continue;
      const auto& first = team.ranks[static_cast<std::size_t>(nodes.first)];
      const bool along = std::count(first.begin(), first.end(), pair.first) > 0;
      latency.push_back(&found->second.latency_ns);
      forward.push_back(along ? &found->second.forward_ns : &found->second.back_ns);
      back.push_back(along ? &found->second.back_ns : &found->second.forward_ns);
    }
    if (latency.empty()) continue;
    pass.tested.push_back(nodes);
    latencies.push_back({nodes.first, nodes.second, Together(latency)});
    sendings.push_back({nodes.first, nodes.second, Together(forward)});
    sendings.push_back({nodes.second, nodes.first, Together(back)});
  }
  // Two nodes have one link, with nothing to compare.
  if (pass.tested.size() < 3) return pass;
  const SlowPairRules rules{slow_factor, kFalseAlarms};
  const PairStandings by_latency = FindSlowPairs(latencies, rules);
  const PairStandings by_sending = FindSlowPairs(sendings, rules);
  pass.usual_latency_ns = by_latency.usual;
  pass.usual_sent_ns = by_sending.usual;
  for (std::size_t i = 0; i < pass.tested.size(); ++i) {
    const PairStanding& latency = by_latency.pairs[i];
    const PairStanding& forward = by_sending.pairs[2 * i];
    const PairStanding& back = by_sending.pairs[2 * i + 1];
    const Standing standing{latency.ratio, forward.ratio, back.ratio, latency.median,
                            latency.slow,  forward.slow,  back.slow};
    pass.standings[pass.tested[i]] = standing;
    if (standing.slow()) pass.slow.push_back(pass.tested[i]);
  }
  return pass;
}

LinkVerdicts JudgeTwice(const Team& team, const PairTable& first, const PairTable& second,
                        double slow_factor) {
  LinkVerdicts verdicts;
  verdicts.first = JudgeOnce(team, first, slow_factor);
  verdicts.second = JudgeOnce(team, second, slow_factor);
  for (const NodePair& pair : verdicts.second.slow) {
    const auto& suspects = verdicts.first.slow;
    if (std::count(suspects.begin(), suspects.end(), pair) > 0) verdicts.confirmed.push_back(pair);
  }
  verdicts.blame = BlameNodesAndLinks(verdicts.second.tested, verdicts.confirmed);
  return verdicts;
}

}  // namespace lockstep
