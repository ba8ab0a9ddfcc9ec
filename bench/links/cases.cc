// Cases whose iteration is an exchange of messages between pairs of ranks.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "bench/plan/plan.h"

namespace lockstep::bench::plan {
namespace {

// Of each of the two passes; a lossy link alone would take minutes to be known to 5 %.
constexpr double kBudgetSeconds = 12;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
// A thread for each direction of each peer, where the library has no non-blocking calls.
constexpr std::size_t kMostThreadedNodes = 33;

using Pairs = std::vector<std::pair<int, int>>;

PlannedCase CaseOf(std::string name, LinkExchange exchange) {
  PlannedCase planned{"links/" + std::move(name), {}, false, "", -1, 0};
  // The peer differs from rank to rank.
  for (const collective::Collective collective :
       {collective::Collective::kSend, collective::Collective::kRecv}) {
    planned.operations.push_back({collective, collective::DataType::kU8,
                                  collective::Reduction::kSum, collective::Blocking::kBlocking,
                                  exchange.bytes, /*root=*/-1});
  }
  if (exchange.pairs.empty()) {
    planned.parts = {{"exchange_ns", "ns", Over::kMax}};
  } else {
    planned.parts = {{"half_round_trip_ns", "ns", Over::kMax},
                     {"sent_ns", "ns", Over::kMax},
                     {"round_trips_wait_ns", "ns", Over::kMax},
                     {"sending_wait_ns", "ns", Over::kMax}};
  }
  planned.settings = {{"bytes", fmt::format("{}", exchange.bytes)}};
  planned.step = std::move(exchange);
  return planned;
}

Pairs RanksOf(const Pairs& pairs, const std::vector<int>& nodes) {
  Pairs ranks;
  for (const auto& [one, other] : pairs) {
    ranks.emplace_back(nodes[static_cast<std::size_t>(one)],
                       nodes[static_cast<std::size_t>(other)]);
  }
  return ranks;
}

Result<bool> AllAtOnce(const BenchSpec& spec, const std::vector<int>& nodes) {
  const LinkAxes& axes = spec.links;
  const bool asked = axes.all_at_once.value_or(false);
  if (spec.backend == "nccl") {
    if (!asked) return false;
    return Unsupported(
        "--all-at-once=1: nccl runs the sends and receives of a rank one after the other; leave it "
        "out, or use another backend");
  }
  if (spec.backend == "gloo" && nodes.size() > kMostThreadedNodes) {
    if (!asked) return false;
    return Unsupported(fmt::format(
        "--all-at-once=1: gloo takes two threads a peer, which is too many for {} ranks; leave it "
        "out, or use at most {}",
        nodes.size(), kMostThreadedNodes));
  }
  return axes.all_at_once.value_or(true);
}

void AddRetests(const std::vector<int>& nodes, std::int64_t bytes, Plan& plan) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t k = i + 1; k < nodes.size(); ++k) {
      const std::string name = fmt::format("retest/{}-{}", nodes[i], nodes[k]);
      plan.cases.push_back(CaseOf(name, {{{nodes[i], nodes[k]}}, {}, bytes, true}));
    }
  }
}

}  // namespace

std::vector<Pairs> RoundRobin(int nodes) {
  // Everybody but the last sits on a circle that turns by one place a round.
  const int even = nodes + nodes % 2;
  std::vector<Pairs> rounds;
  for (int round = 0; round < even - 1; ++round) {
    Pairs& pairs = rounds.emplace_back();
    for (int k = 0; k < even / 2; ++k) {
      const int one = k == 0 ? even - 1 : (round + k) % (even - 1);
      const int other = (round - k + even - 1) % (even - 1);
      // Whoever meets the one that is not there has a rest.
      if (std::max(one, other) < nodes) pairs.push_back(std::minmax(one, other));
    }
  }
  return rounds;
}

Result<Plan> ExpandLinkPlan(const BenchSpec& spec, int world_size, const std::vector<int>& nodes) {
  LOCKSTEP_ASSIGN_OR_RETURN(Plan plan, PlanWithoutCases(spec, world_size));
  const std::int64_t bytes = spec.links.bytes;
  if (bytes < 1 || bytes > kMostBytes) {
    return InvalidInput(fmt::format("--bytes {}: give a size from 1 to 1G", bytes));
  }
  if (nodes.size() < 2) {
    return InvalidInput("--per=host: all ranks are on one host; use --per=rank, or more hosts");
  }
  if (nodes.size() * (nodes.size() + 1) / 2 > kMaxCases) {
    return InvalidInput(fmt::format("{} ranks have more than {} pairs; use --per=host, or fewer",
                                    nodes.size(), kMaxCases));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool all_at_once, AllAtOnce(spec, nodes));
  plan.paired = true;  // drift of the machine meets all links alike
  if (!plan.time_budget_seconds) plan.time_budget_seconds = kBudgetSeconds;
  for (const Pairs& pairs : RoundRobin(static_cast<int>(nodes.size()))) {
    const Pairs ranks = RanksOf(pairs, nodes);
    if (!spec.links.one_at_a_time) {
      const std::string name = fmt::format("round:{}", plan.cases.size());
      plan.cases.push_back(CaseOf(name, {ranks, {}, bytes, false}));
      continue;
    }
    for (const auto& pair : ranks) {
      const std::string name = fmt::format("pair:{}-{}", pair.first, pair.second);
      plan.cases.push_back(CaseOf(name, {{pair}, {}, bytes, false}));
    }
  }
  if (all_at_once) plan.cases.push_back(CaseOf("all_at_once", {{}, nodes, bytes, false}));
  AddRetests(nodes, bytes, plan);
  std::vector<std::size_t> all(plan.cases.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return Select(plan, all);  // which sizes the buffers
}

}  // namespace lockstep::bench::plan
