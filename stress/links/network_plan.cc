// A fault between the hosts of two ranks becomes rules, one for each host whose packets it befalls.
#include "stress/links/network_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::stress::links {
namespace {

network::NetworkRule RuleOf(const faults::PlannedFault& fault) {
  network::NetworkRule rule;
  rule.down = fault.kind == faults::FaultKind::kNetworkDown;
  rule.reset = fault.kind == faults::FaultKind::kNetworkReset;
  rule.block = fault.kind == faults::FaultKind::kNetworkBlock;
  rule.port = static_cast<int>(AmountOf(fault, "port"));
  rule.refuse = AmountOf(fault, "refuse") != 0;
  rule.loss = AmountOf(fault, "loss");
  rule.rate_bytes_per_s = AmountOf(fault, "rate");
  rule.reorder = AmountOf(fault, "share");
  const bool reorders = fault.kind == faults::FaultKind::kNetworkReorder;
  (reorders ? rule.reorder_s : rule.delay_s) = AmountOf(fault, "delay");
  rule.jitter_s = AmountOf(fault, "jitter");
  return rule;
}

}  // namespace

double AmountOf(const faults::PlannedFault& fault, const char* key) {
  const auto found = fault.amounts.find(key);
  return found == fault.amounts.end() ? 0 : found->second;
}

Result<std::vector<HostRule>> PlanNetworkFault(
    const faults::PlannedFault& fault, const std::vector<control::AgentInfo>& agents,
    const std::vector<std::vector<std::string>>& addresses) {
  const auto host = [&](int rank) { return agents[static_cast<std::size_t>(rank)].host; };
  const auto first = [&](const std::string& name) {
    const auto found = std::ranges::find(agents, name, &control::AgentInfo::host);
    return static_cast<int>(found - agents.begin());
  };
  const int from = first(host(fault.rank));
  // The first ranks of the other hosts.
  std::vector<int> others;
  if (fault.amounts.contains("to")) {
    others.push_back(first(host(static_cast<int>(AmountOf(fault, "to")))));
  } else {
    for (int rank = 0; rank < static_cast<int>(agents.size()); ++rank) {
      if (rank != from && first(host(rank)) == rank) others.push_back(rank);
    }
  }
  if (others.empty() || others.front() == from) {
    return EnvironmentError(fmt::format(
        "there is no network between its ranks, which are all on {}; start it over several hosts "
        "(scripts/test_hosts makes some)",
        host(from)));
  }
  const auto rule_at = [&](int rank) {
    HostRule made{rank, RuleOf(fault)};
    for (const control::AgentInfo& agent : agents) {
      if (agent.host == host(rank)) made.rule.spared.push_back(agent.pid);
    }
    return made;
  };
  std::vector<HostRule> rules = {rule_at(from)};
  // Whose packets meet it; one host forgets a connection for both ends.
  const bool both =
      AmountOf(fault, "one_way") == 0 && fault.kind != faults::FaultKind::kNetworkReset;
  for (const int other : others) {
    const auto& there = addresses[static_cast<std::size_t>(other)];
    auto& to = rules.front().rule.to;
    to.insert(to.end(), there.begin(), there.end());
    if (!both) continue;
    rules.push_back(rule_at(other));
    rules.back().rule.to = addresses[static_cast<std::size_t>(from)];
  }
  for (const HostRule& rule : rules) {
    if (!rule.rule.to.empty()) continue;
    return EnvironmentError("the other host has no IPv4 address beside the loopback's");
  }
  return rules;
}

}  // namespace lockstep::stress::links
