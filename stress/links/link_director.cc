// Learns from the plugins whose each connection is, sends each fault to the agents whose links
// it befalls, and counts which of them are in force. A fault between the hosts of two ranks becomes
// rules, one for each host whose packets it befalls.
#include "stress/links/link_director.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "core/base/now.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/collective/data_type.h"
#include "core/control/codec.h"
#include "core/journal/event.h"
#include "stress/links/link_orders.h"
#include "stress/links/link_rule.h"
#include "stress/network/network_rule.h"

namespace lockstep::stress::links {
namespace {

// For the agent of `rank`: the first one of its host.
struct HostRule {
  int rank = 0;
  network::NetworkRule rule;
};

// What the user gave for `key`; 0 where it was not given.
double AmountOf(const faults::PlannedFault& fault, const char* key) {
  const auto found = fault.amounts.find(key);
  return found == fault.amounts.end() ? 0 : found->second;
}

network::NetworkRule RuleOf(const faults::PlannedFault& fault) {
  network::NetworkRule rule{.down = fault.kind == faults::FaultKind::kNetworkDown,
                            .reset = fault.kind == faults::FaultKind::kNetworkReset,
                            .block = fault.kind == faults::FaultKind::kNetworkBlock,
                            .port = static_cast<int>(AmountOf(fault, "port")),
                            .refuse = AmountOf(fault, "refuse") != 0,
                            .loss = AmountOf(fault, "loss"),
                            .reorder = AmountOf(fault, "share"),
                            .rate_bytes_per_s = AmountOf(fault, "rate")};
  const bool reorders = fault.kind == faults::FaultKind::kNetworkReorder;
  (reorders ? rule.reorder_s : rule.delay_s) = AmountOf(fault, "delay");
  rule.jitter_s = AmountOf(fault, "jitter");
  return rule;
}

// `addresses`: by rank, those of its host. kEnvironment in one line when the fault cannot be there:
// its ranks are on one host, or a host has no address.
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
    return EnvironmentError(
        "there is no network between its ranks, which are all on {}; start it over several hosts "
        "(scripts/test_hosts makes some)",
        host(from));
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

// As the relay of `rank` sees it; none when its connections are not concerned.
std::optional<LinkRule> RuleFor(const faults::PlannedFault& fault, int rank) {
  LinkRule rule;
  const int to =
      fault.amounts.contains("to") ? static_cast<int>(AmountOf(fault, "to")) : LinkRule::kEveryPeer;
  const bool one_way = AmountOf(fault, "one_way") != 0;
  if (rank == fault.rank) {
    rule.peer = to;
    rule.incoming = !one_way;
  } else if (to == LinkRule::kEveryPeer || rank == to) {
    rule.peer = fault.rank;
    rule.outgoing = !one_way;
  } else {
    return std::nullopt;
  }
  rule.down = fault.kind == faults::FaultKind::kLinkDown;
  rule.reset = fault.kind == faults::FaultKind::kLinkReset;
  rule.delay_s = AmountOf(fault, "delay");
  rule.jitter_s = AmountOf(fault, "jitter");
  rule.loss = AmountOf(fault, "loss");
  rule.rate_bytes_per_s = AmountOf(fault, "rate");
  return rule;
}

// Faults of links need the relay, those of the network do not.
bool NeedsRelay(const std::vector<faults::PlannedFault>& faults) {
  return std::ranges::any_of(faults, [](const faults::PlannedFault& fault) {
    return faults::IsOfLink(fault.kind) && !faults::IsOfNetwork(fault.kind);
  });
}

// What came is also added up before more can come, by processors that others may want: so many
// bytes a second.
constexpr double kAddedBytes = 100e6;

// What the largest of the collectives that ranks are in may need for that.
double AddingSeconds(const std::vector<verdict::RankEvidence>& evidence) {
  double bytes = 0;
  for (const verdict::RankEvidence& rank : evidence) {
    if (rank.journal.events.empty()) continue;
    const journal::JournalEvent& last = rank.journal.events.back();
    if (last.kind != journal::EventKind::kStart) continue;
    bytes = std::max(bytes, static_cast<double>(last.count * collective::SizeOf(last.type)));
  }
  return bytes / kAddedBytes;
}

}  // namespace

bool LinkDirector::Has(const std::vector<faults::PlannedFault>& faults) {
  return std::ranges::any_of(
      faults, [](const faults::PlannedFault& fault) { return faults::IsOfLink(fault.kind); });
}

void LinkDirector::Begin(const std::vector<faults::PlannedFault>& faults, std::uint64_t seed) {
  faults_ = &faults;
  seed_ = seed;
  const bool used = Has(faults);
  orders_.clear();
  received_ = 0;
  moved_ns_ = 0;
  addresses_.assign(static_cast<std::size_t>(coordinator_.size()), std::nullopt);
  for (int rank = 0; rank < coordinator_.size(); ++rank) {
    coordinator_.SendToPlugin(rank, fmt::format("{} {:d}", kUseOrder, NeedsRelay(faults)));
    coordinator_.SendToPlugin(rank, fmt::format("{} {:d}", kWatchOrder, used));
    if (used) coordinator_.SendToPlugin(rank, kAddressesOrder);
  }
}

void LinkDirector::Apply(std::size_t fault, std::function<void()> applied) {
  // What the ranks are connected by is known also when the fault has ended that.
  coordinator_.Glance();
  const int id = next_rule_++;
  Order order{fault, 0, std::move(applied)};
  if (faults::IsOfNetwork((*faults_)[fault].kind)) {
    orders_[id] = std::move(order);
    return ApplyToNetwork(id);
  }
  for (int rank = 0; rank < coordinator_.size(); ++rank) {
    std::optional<LinkRule> rule = RuleFor((*faults_)[fault], rank);
    if (!rule) continue;
    rule->id = id;
    rule->seed = Mix64(seed_ + fault) + static_cast<std::uint64_t>(rank);
    coordinator_.SendToPlugin(rank, fmt::format("{} {}", kApplyOrder, control::Encode(*rule)));
    ++order.relays;
  }
  orders_[id] = std::move(order);
}

void LinkDirector::ApplyToNetwork(int id) {
  std::vector<std::vector<std::string>> addresses;
  for (const auto& known : addresses_) {
    if (!known) return;  // they come, and then it is applied
    addresses.push_back(*known);
  }
  Order& order = orders_.at(id);
  Result<std::vector<HostRule>> rules =
      PlanNetworkFault((*faults_)[order.fault], coordinator_.agents(), addresses);
  if (!rules.ok()) {
    order.impossible = true;
    order.note = rules.status().message();
    return order.applied();
  }
  order.relays = static_cast<int>(rules->size());
  for (HostRule& rule : *rules) {
    rule.rule.id = id;
    rule.rule.seed = Mix64(seed_ + order.fault) + static_cast<std::uint64_t>(rule.rank);
    coordinator_.SendToPlugin(rule.rank,
                              fmt::format("{} {}", kNetworkOrder, control::Encode(rule.rule)));
  }
}

void LinkDirector::Heal(std::size_t fault) {
  for (const auto& [id, order] : orders_) {
    if (order.fault != fault) continue;
    for (int rank = 0; rank < coordinator_.size(); ++rank) {
      coordinator_.SendToPlugin(rank, fmt::format("{} {}", kHealOrder, id));
    }
  }
}

int LinkDirector::OwnerOf(const std::string& endpoint) {
  for (const verdict::RankEvidence& rank : coordinator_.Glance()) {
    for (const verdict::TcpSocket& socket : rank.sockets) {
      if (!socket.closed && socket.remote.empty() && socket.local == endpoint) return rank.rank;
    }
  }
  return -1;
}

std::optional<std::size_t> LinkDirector::OnReport(int rank, const std::string& report) {
  std::istringstream words(report);
  std::string verb, endpoint;
  int number = 0;
  words >> verb;
  if (verb == kAddressesReport) {
    OnAddresses(rank, report);
    return std::nullopt;
  }
  if (verb == kEcho) {
    coordinator_.SendToPlugin(rank, report);
    return std::nullopt;
  }
  words >> number;
  if (verb == kAskReport && words >> endpoint) {
    coordinator_.SendToPlugin(rank,
                              fmt::format("{} {} {}", kAnswerOrder, number, OwnerOf(endpoint)));
    return std::nullopt;
  }
  const auto order = orders_.find(number);
  if (order == orders_.end()) return std::nullopt;
  if (verb == kTouchedReport && !order->second.impossible) return order->second.fault;
  const bool done = verb == kDoneReport || verb == kAppliedReport;
  if (!done && verb != kImpossibleReport) return std::nullopt;
  std::string note;
  std::getline(words >> std::ws, note);
  OnApplied(rank, order->second, number, done, note);
  return std::nullopt;
}

void LinkDirector::OnApplied(int rank, Order& order, int id, bool done, const std::string& note) {
  if (!note.empty()) {
    order.note += fmt::format("{}{}: {}", order.note.empty() ? "" : "; ",
                              coordinator_.agents()[static_cast<std::size_t>(rank)].host, note);
  }
  // A fault that is not whole is none.
  if (!done) order.impossible = true;
  if (--order.relays > 0) return;
  if (order.impossible) {
    for (int other = 0; other < coordinator_.size(); ++other) {
      coordinator_.SendToPlugin(other, fmt::format("{} {}", kHealOrder, id));
    }
  }
  order.applied();
}

std::string LinkDirector::NoteOf(std::size_t fault) const {
  for (const auto& [id, order] : orders_) {
    if (order.fault == fault) return order.note;
  }
  return "";
}

void LinkDirector::OnAddresses(int rank, const std::string& report) {
  std::istringstream words(report);
  std::string word;
  words >> word;
  auto& known = addresses_[static_cast<std::size_t>(rank)].emplace();
  while (words >> word) known.push_back(word);
  for (const auto& [id, order] : orders_) {
    const faults::FaultKind kind = (*faults_)[order.fault].kind;
    if (faults::IsOfNetwork(kind) && order.relays == 0 && order.note.empty()) ApplyToNetwork(id);
  }
}

void LinkDirector::Look(const std::vector<verdict::RankEvidence>& evidence) {
  adding_seconds_ = AddingSeconds(evidence);
  std::uint64_t received = 0;
  std::uint32_t ago_ms = std::numeric_limits<std::uint32_t>::max();
  for (const verdict::RankEvidence& rank : evidence) {
    for (const verdict::TcpSocket& socket : rank.sockets) {
      received += socket.received;
      // A closed one's is of the moment at which it was last seen.
      if (socket.received > 0 && !socket.closed) ago_ms = std::min(ago_ms, socket.last_received_ms);
    }
  }
  if (received == received_) return;
  // Between two looks much may have come, and long ago.
  const bool known = ago_ms != std::numeric_limits<std::uint32_t>::max();
  received_ = received;
  moved_ns_ = NowNs() - (known ? std::int64_t{ago_ms} * 1'000'000 : 0);
}

bool LinkDirector::Moved(double seconds) const {
  return static_cast<double>(NowNs() - moved_ns_) * 1e-9 < seconds + adding_seconds_;
}

}  // namespace lockstep::stress::links
