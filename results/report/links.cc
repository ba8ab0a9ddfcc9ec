// Links as matrices up to twelve ranks, and as quantiles beyond. Pairs that stand out follow, the
// slowest first. Standings come from the run; nothing is judged here.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/base/wrap.h"
#include "core/stats/stats.h"
#include "results/report/figures.h"
#include "results/report/grid.h"
#include "results/report/sections.h"

namespace lockstep::results::report {
namespace {

constexpr std::size_t kWidestMatrix = 12;  // ranks
constexpr std::size_t kMostRows = 12;      // of pairs that stand out

using Cell = std::function<std::string(int from, int to)>;

std::vector<int> RanksOf(const store::LinkMatrix& links) {
  std::set<int> ranks;
  for (const store::LinkPair& pair : links.pairs) ranks.insert({pair.a, pair.b});
  return {ranks.begin(), ranks.end()};
}

// "0 node1"; the number alone where the run does not say the host.
std::string NameOf(const store::Run& run, int rank) {
  const std::string host = ValueOf(run.environment, fmt::format("ranks/{}/host", rank));
  return host.empty() ? std::to_string(rank) : fmt::format("{} {}", rank, OneLine(host));
}

std::string MatrixOf(const store::Run& run, const std::vector<int>& ranks, const Cell& cell) {
  Grid grid;
  grid.AddColumn("", Grid::Align::kLeft);
  for (const int rank : ranks) grid.AddColumn(std::to_string(rank), Grid::Align::kRight);
  for (const int from : ranks) {
    std::vector<std::string> row = {NameOf(run, from)};
    for (const int to : ranks) row.push_back(from == to ? "." : cell(from, to));
    grid.AddRow(std::move(row));
  }
  return grid.Format();
}

std::string Matrices(const store::Run& run, const std::vector<int>& ranks) {
  std::map<std::pair<int, int>, std::string> latency, rate;
  for (const store::LinkPair& pair : run.links->pairs) {
    // What stands out is marked.
    const char* mark = pair.standing.starts_with("slow") ? "*" : "";
    const auto a_to_b = std::pair(pair.a, pair.b);
    const auto b_to_a = std::pair(pair.b, pair.a);
    latency[a_to_b] = latency[b_to_a] = mark + FormatDuration(pair.latency_ns);
    rate[a_to_b] = mark + BandwidthText(pair.forward_gbps);
    rate[b_to_a] = mark + BandwidthText(pair.back_gbps);
  }
  const auto in = [](const auto& table) {
    return [&table](int from, int to) {
      const auto found = table.find({from, to});
      return found == table.end() ? std::string("-") : found->second;
    };
  };
  return "Half round trip of 8 bytes, rank to rank\n" + MatrixOf(run, ranks, in(latency)) +
         fmt::format("\nGB/s of messages of {}, from the row's rank to the column's\n",
                     FormatBytes(run.links->bytes)) +
         MatrixOf(run, ranks, in(rate));
}

// Where a matrix would not fit: how the figures spread.
std::string Spread(const store::LinkMatrix& links) {
  std::vector<double> latencies, rates;
  for (const store::LinkPair& pair : links.pairs) {
    if (std::isfinite(pair.latency_ns)) latencies.push_back(pair.latency_ns);
    for (const double rate : {pair.forward_gbps, pair.back_gbps}) {
      if (std::isfinite(rate)) rates.push_back(rate);
    }
  }
  if (latencies.empty() || rates.empty()) return "No pair was measured.\n";
  Grid grid;
  grid.AddColumn(fmt::format("{} pairs", links.pairs.size()), Grid::Align::kLeft);
  grid.AddColumns(Grid::Align::kRight, {"min", "p5", "p25", "median", "p75", "p95", "max"});
  std::vector<std::string> latency_row = {"half round trip of 8 bytes"};
  std::vector<std::string> rate_row = {
      fmt::format("GB/s of messages of {}", FormatBytes(links.bytes))};
  for (const double p : {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
    latency_row.push_back(FormatDuration(stats::Quantile(latencies, p)));
    rate_row.push_back(BandwidthText(stats::Quantile(rates, p)));
  }
  grid.AddRow(std::move(latency_row));
  grid.AddRow(std::move(rate_row));
  return grid.Format();
}

// Slow pairs and unsteady ones, the slowest first.
std::string StandingOut(const store::Run& run) {
  std::vector<const store::LinkPair*> pairs;
  std::size_t lost = 0;
  for (const store::LinkPair& pair : run.links->pairs) {
    lost += pair.standing == "not_measured";
    if (pair.standing.starts_with("slow") || pair.standing == "unsteady") pairs.push_back(&pair);
  }
  std::string text;
  if (lost > 0) {
    text += fmt::format("\nNot measured: {} of {} pairs.\n", lost, run.links->pairs.size());
  }
  if (pairs.empty()) return text;
  std::ranges::stable_sort(pairs, [](const store::LinkPair* one, const store::LinkPair* other) {
    return one->latency_ns > other->latency_ns;
  });
  Grid grid;
  grid.AddColumn("pair", Grid::Align::kLeft);
  grid.AddColumns(Grid::Align::kRight,
                  {"half trip", "again", "GB/s ->", "again", "GB/s <-", "again"});
  grid.AddColumn("standing", Grid::Align::kLeft);
  for (std::size_t i = 0; i < std::min(kMostRows, pairs.size()); ++i) {
    const store::LinkPair& pair = *pairs[i];
    grid.AddRow({NameOf(run, pair.a) + " - " + NameOf(run, pair.b), FormatDuration(pair.latency_ns),
                 FormatDuration(pair.retest_latency_ns), BandwidthText(pair.forward_gbps),
                 BandwidthText(pair.retest_forward_gbps), BandwidthText(pair.back_gbps),
                 BandwidthText(pair.retest_back_gbps), pair.standing});
  }
  text += fmt::format("\nPairs that stand out ({} and {} GB/s are usual; again: measured alone)\n",
                      FormatDuration(run.links->usual_latency_ns),
                      BandwidthText(run.links->usual_gbps)) +
          grid.Format();
  if (pairs.size() > kMostRows) text += fmt::format("... and {} more\n", pairs.size() - kMostRows);
  return text;
}

std::string AllAtOnce(const store::Run& run) {
  std::vector<double> rates;
  std::string list;
  for (std::size_t rank = 0; rank < run.links->all_at_once_gbps.size(); ++rank) {
    const double rate = run.links->all_at_once_gbps[rank];
    if (!std::isfinite(rate)) continue;
    rates.push_back(rate);
    list += fmt::format("{}rank {}: {}", list.empty() ? "" : ", ", rank, BandwidthText(rate));
  }
  if (rates.empty()) return "";
  std::string text = fmt::format(
      "\nEvery rank with all others at once: each sends {} GB/s (median; {} to {})\n",
      BandwidthText(stats::Median(rates)), BandwidthText(*std::ranges::min_element(rates)),
      BandwidthText(*std::ranges::max_element(rates)));
  return rates.size() > kWidestMatrix ? text : text + "  " + list + "\n";
}

}  // namespace

std::string FormatLinks(const store::Run& run) {
  const std::vector<int> ranks = RanksOf(*run.links);
  const bool fits = ranks.size() <= kWidestMatrix;
  return (fits ? Matrices(run, ranks) : Spread(*run.links)) + StandingOut(run) + AllAtOnce(run);
}

}  // namespace lockstep::results::report
