// Cases whose iteration is an exchange of messages between pairs of ranks: in rounds of disjoint
// pairs, all at once, and each pair alone.
#include "bench/links/cases.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/plan/step_fields.h"

namespace lockstep::bench::links {
namespace {

// Of each of the two passes; a lossy link alone would take minutes to be known to 5 %.
constexpr double kBudgetSeconds = 12;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
// A thread for each direction of each peer, where the library has no non-blocking calls.
constexpr std::size_t kMostThreadedNodes = 33;

// Each iteration of a link begins by meeting the partner, and has five small messages before the
// large one: it needs no warm-up. One of a slow link may take seconds. Directions take turns. Links
// are judged by their rounds, also those of which a round takes long.
constexpr plan::Visits kVisits{
    .batch_ns = 10'000'000, .multiple = 2, .most_iterations = 16, .fewest_rounds = 7};

using Pairs = std::vector<std::pair<int, int>>;

plan::PlannedCase CaseOf(std::string name, const LinkExchange& exchange) {
  plan::PlannedCase planned{"links/" + std::move(name), {}, false, "", -1, 0};
  // The peer differs from rank to rank.
  for (const collective::Collective collective :
       {collective::Collective::kSend, collective::Collective::kRecv}) {
    planned.operations.push_back({collective, collective::DataType::kU8,
                                  collective::Reduction::kSum, collective::Blocking::kBlocking,
                                  exchange.bytes, /*root=*/-1});
  }
  if (exchange.pairs.empty()) {
    planned.parts = {{"exchange_ns", "ns", plan::RankReduction::kMax}};
  } else {
    planned.parts = {{"half_round_trip_ns", "ns", plan::RankReduction::kMax},
                     {"sent_ns", "ns", plan::RankReduction::kMax},
                     {"round_trips_wait_ns", "ns", plan::RankReduction::kMax},
                     {"sending_wait_ns", "ns", plan::RankReduction::kMax},
                     {"kernel_round_trip_ns", "ns", plan::RankReduction::kMax},
                     {"segments", "segments", plan::RankReduction::kMax},
                     {"lost_segments", "segments", plan::RankReduction::kMax}};
  }
  planned.settings = {{"bytes", fmt::format("{}", exchange.bytes)}};
  planned.step = plan::PlanStep(exchange);
  const auto blocks = std::max<std::int64_t>(1, std::ssize(exchange.everyone));
  const std::int64_t small = plan::AlignedBytes(kPingBytes);
  planned.send_bytes = plan::AlignedBytes(exchange.bytes) + small;
  planned.recv_bytes = blocks * plan::AlignedBytes(exchange.bytes) + small;
  planned.rests = exchange.retest;
  planned.visits = kVisits;
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

Result<bool> AllAtOnce(const plan::BenchSpec& spec, const Axes& axes,
                       const std::vector<int>& nodes) {
  const bool asked = axes.all_at_once.value_or(false);
  if (spec.backend == "nccl") {
    if (!asked) return false;
    return Unsupported(
        "--all-at-once=1: nccl runs the sends and receives of a rank one after the other; leave it "
        "out, or use another backend");
  }
  if (spec.backend == "gloo" && nodes.size() > kMostThreadedNodes) {
    if (!asked) return false;
    return Unsupported(
        "--all-at-once=1: gloo takes two threads a peer, which is too many for {} ranks; leave it "
        "out, or use at most {}",
        nodes.size(), kMostThreadedNodes);
  }
  return axes.all_at_once.value_or(true);
}

void AddRetests(const std::vector<int>& nodes, LinkExchange exchange, plan::Plan& plan) {
  exchange.retest = true;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t k = i + 1; k < nodes.size(); ++k) {
      const std::string name = fmt::format("retest/{}-{}", nodes[i], nodes[k]);
      exchange.pairs = {{nodes[i], nodes[k]}};
      plan.cases.push_back(CaseOf(name, exchange));
    }
  }
}

void AddRounds(const std::vector<int>& nodes, bool one_at_a_time, LinkExchange exchange,
               plan::Plan& plan) {
  for (const Pairs& pairs : RoundRobin(static_cast<int>(nodes.size()))) {
    const Pairs ranks = RanksOf(pairs, nodes);
    if (!one_at_a_time) {
      exchange.pairs = ranks;
      plan.cases.push_back(CaseOf(fmt::format("round:{}", plan.cases.size()), exchange));
      continue;
    }
    for (const auto& pair : ranks) {
      exchange.pairs = {pair};
      plan.cases.push_back(CaseOf(fmt::format("pair:{}-{}", pair.first, pair.second), exchange));
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

std::vector<LinkExchange> ExchangesOf(const plan::Plan& plan) {
  std::vector<LinkExchange> exchanges;
  for (const plan::PlannedCase& planned : plan.cases) {
    exchanges.push_back(plan::StepOf<LinkExchange>(planned));
  }
  return exchanges;
}

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size,
                          const std::vector<int>& nodes) {
  LOCKSTEP_ASSIGN_OR_RETURN(plan::Plan plan, plan::PlanWithoutCases(spec, world_size));
  if (axes.bytes < 1 || axes.bytes > kMostBytes) {
    return InvalidInput("--bytes {}: give a size from 1 to 1G", axes.bytes);
  }
  if (plan.iterations && *plan.iterations < 2) {
    return InvalidInput("-n {}: a link has two directions, which take turns; give 2 or more",
                        *plan.iterations);
  }
  if (nodes.size() < 2) {
    return InvalidInput("--per=host: all ranks are on one host; use --per=rank, or more hosts");
  }
  if (nodes.size() * (nodes.size() + 1) / 2 > plan::kMaxCases) {
    return InvalidInput("{} ranks have more than {} pairs; use --per=host, or fewer", nodes.size(),
                        plan::kMaxCases);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool all_at_once, AllAtOnce(spec, axes, nodes));
  plan.paired = true;  // drift of the machine meets all links alike
  if (!plan.time_budget_seconds && !plan.iterations) plan.time_budget_seconds = kBudgetSeconds;
  LinkExchange exchange{.bytes = axes.bytes, .slow_factor = axes.slow_factor};
  AddRounds(nodes, axes.one_at_a_time, exchange, plan);
  if (all_at_once) {
    LinkExchange together = exchange;
    together.everyone = nodes;
    plan.cases.push_back(CaseOf("all_at_once", together));
  }
  AddRetests(nodes, exchange, plan);
  plan::SizeMemory(plan);
  return plan;
}

}  // namespace lockstep::bench::links
