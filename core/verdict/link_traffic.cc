// Pairs the sockets of ranks into connections, and reads off which of them hold bytes back or
// broke. Errors name endpoints in the words of their library, so that those are parsed.
#include "core/verdict/link_traffic.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include "core/verdict/wording.h"

namespace lockstep::verdict {
namespace {

// As libraries write an endpoint: "127.0.0.1:4000", "[127.0.0.1]:4000" (gloo), "127.0.0.1<4000>"
// (NCCL). Here: address and port with one colon between.
std::vector<std::string> EndpointsIn(const std::string& text) {
  static const std::regex kEndpoint(R"((?:^|[^\d.])(\d+(?:\.\d+){3})\]?[:<](\d{1,5}))");
  std::vector<std::string> endpoints;
  for (std::sregex_iterator found(text.begin(), text.end(), kEndpoint), end; found != end;
       ++found) {
    const std::string address = found->str(1);
    const int port = std::stoi(found->str(2));
    endpoints.push_back(fmt::format("{}:{}", address, port));
    // gloo of 2022 writes the port's bytes in the order in which they travel.
    endpoints.push_back(fmt::format("{}:{}", address, (port & 0xff) << 8 | (port >> 8 & 0xff)));
  }
  return endpoints;
}

constexpr int kNobody = -1;

// Whose an endpoint is; one that two ranks have, as loopback addresses of two hosts, is nobody's.
std::map<std::string, int> OwnersOf(const Ranks& evidence) {
  std::map<std::string, int> owners;
  for (const RankEvidence* rank : evidence) {
    for (const TcpSocket& socket : rank->sockets) {
      const auto [known, is_new] =
          owners.emplace(socket.local.substr(0, socket.local.find('%')), rank->rank);
      if (!is_new && known->second != rank->rank) known->second = kNobody;
    }
  }
  return owners;
}

// Whose an address without a port is, likewise.
std::map<std::string, int> AddressesOf(const std::map<std::string, int>& owners) {
  std::map<std::string, int> addresses;
  for (const auto& [endpoint, owner] : owners) {
    const auto [known, is_new] = addresses.emplace(endpoint.substr(0, endpoint.rfind(':')), owner);
    if (!is_new && known->second != owner) known->second = kNobody;
  }
  return addresses;
}

// Of a port that nobody was seen to have the address tells it, where a host has one rank.
int OwnerOf(const std::string& endpoint, const std::map<std::string, int>& owners,
            const std::map<std::string, int>& addresses) {
  const auto owner = owners.find(endpoint);
  if (owner != owners.end()) return owner->second;
  const auto host = addresses.find(endpoint.substr(0, endpoint.rfind(':')));
  return host == addresses.end() ? kNobody : host->second;
}

}  // namespace

std::vector<LinkTraffic> TrafficOf(const Ranks& evidence, bool closed) {
  struct End {
    int rank;
    const TcpSocket* socket;
  };
  std::map<std::pair<std::string_view, std::string_view>, End> ends;
  for (const RankEvidence* rank : evidence) {
    for (const TcpSocket& socket : rank->sockets) {
      if (socket.closed && !closed) continue;
      if (!socket.remote.empty()) ends[{socket.local, socket.remote}] = {rank->rank, &socket};
    }
  }
  std::vector<LinkTraffic> all;
  for (const auto& [names, end] : ends) {
    const auto other = ends.find({names.second, names.first});
    if (other == ends.end() || other->second.rank == end.rank) continue;
    const TcpSocket& reader = *other->second.socket;
    const TcpSocket& writer = *end.socket;
    LinkTraffic link{.from = end.rank,
                     .to = other->second.rank,
                     .written = writer.written,
                     .received = reader.received,
                     .unread = reader.unread,
                     .retransmits = writer.retransmits,
                     .arrivals = reader.arrivals,
                     .least_round_trip_s = writer.least_round_trip_us * 1e-6,
                     .writer = &writer,
                     .reader = &reader};
    if (link.relayed()) {
      // The kernels have only a part of the way.
      link.least_round_trip_s = 0;
      link.retransmits = writer.relayed ? writer.out.lost : reader.in.lost;
    }
    all.push_back(link);
  }
  return all;
}

std::vector<LinkTraffic> FindStalledLinks(const Ranks& evidence) {
  std::vector<LinkTraffic> stalled = TrafficOf(evidence);
  std::erase_if(stalled,
                [](const LinkTraffic& link) { return link.on_the_way() == 0 || link.unread > 0; });
  std::ranges::sort(stalled, [](const LinkTraffic& a, const LinkTraffic& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  // Of several connections one says it.
  const auto same = [](const LinkTraffic& a, const LinkTraffic& b) {
    return a.from == b.from && a.to == b.to;
  };
  stalled.erase(std::unique(stalled.begin(), stalled.end(), same), stalled.end());
  return stalled;
}

std::string DescribeStalled(const std::vector<LinkTraffic>& stalled) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(stalled.size(), kMost); ++i) {
    const LinkTraffic& link = stalled[i];
    text += fmt::format("{}{} bytes from rank {} to rank {}", i > 0 ? ", " : "", link.on_the_way(),
                        link.from, link.to);
    if (link.retransmits > 0) text += fmt::format(" (sent {} segments again)", link.retransmits);
  }
  if (stalled.size() > kMost) text += fmt::format(" and on {} more links", stalled.size() - kMost);
  return text + " were written and have not arrived, while their reader has read all that did";
}

namespace {

// It goes on, so that it reset no connection.
bool Lives(const RankEvidence& rank) {
  const auto& events = rank.journal.events;
  return rank.state == ProcessState::kRunning && !rank.idle && rank.error.empty() &&
         !events.empty() && events.back().kind != EventKind::kError &&
         events.back().kind != EventKind::kExit;
}

// `other` was told of an ended connection, too, but later: until then it reset none.
bool FellLater(const RankEvidence& one, const RankEvidence& other) {
  const JournalEvent* const first = FirstErrorOf(one);
  const JournalEvent* const later = FirstErrorOf(other);
  return one.host == other.host && IsEcho(other.error) && first != nullptr && later != nullptr &&
         later->ticks > first->ticks;
}

const RankEvidence* EvidenceOf(const Ranks& evidence, int rank) {
  const auto found = std::ranges::find(evidence, rank, &RankEvidence::rank);
  return found == evidence.end() ? nullptr : *found;
}

}  // namespace

std::vector<LinkTraffic> FindBrokenLinks(const Ranks& evidence) {
  const std::map<std::string, int> owners = OwnersOf(evidence);
  const std::map<std::string, int> addresses = AddressesOf(owners);
  std::map<int, int> accuses;
  std::set<int> was_reset;
  for (const RankEvidence* rank : evidence) {
    if (rank->error.find("reset by peer") != std::string::npos) was_reset.insert(rank->rank);
    for (const std::string& endpoint : EndpointsIn(rank->error)) {
      const int owner = OwnerOf(endpoint, owners, addresses);
      if (owner == kNobody || owner == rank->rank) continue;
      accuses[rank->rank] = owner;
      break;
    }
  }
  std::vector<LinkTraffic> broken;
  for (const auto& [one, other] : accuses) {
    const auto back = accuses.find(other);
    const bool both = back != accuses.end() && back->second == one;
    const RankEvidence* const peer = EvidenceOf(evidence, other);
    const auto outlived = [&] {
      return Lives(*peer) || FellLater(*EvidenceOf(evidence, one), *peer);
    };
    if (both ? one > other : !was_reset.contains(one) || !outlived()) continue;
    broken.push_back({.from = std::min(one, other), .to = std::max(one, other)});
    broken.push_back({.from = std::max(one, other), .to = std::min(one, other)});
  }
  return broken;
}

std::optional<std::pair<int, int>> FindBrokenLink(const Ranks& evidence) {
  const std::vector<LinkTraffic> broken = FindBrokenLinks(evidence);
  if (broken.size() != 2) return std::nullopt;
  return std::pair(broken.front().from, broken.front().to);
}

namespace {

Ranks RanksOf(const Situation& situation) {
  Ranks ranks;
  for (const RankView& view : situation.views) ranks.push_back(view.evidence);
  return ranks;
}

}  // namespace

std::vector<int> CommonEnds(const std::vector<LinkTraffic>& links) {
  std::set<std::pair<int, int>> pairs;
  std::set<int> ends, common;
  for (const LinkTraffic& link : links) pairs.insert(std::minmax({link.from, link.to}));
  for (const auto& [one, other] : pairs) ends.insert({one, other});
  for (const int end : ends) {
    const bool in_all = std::ranges::all_of(
        pairs, [&](const auto& pair) { return pair.first == end || pair.second == end; });
    if (in_all) common.insert(end);
  }
  const std::set<int>& named = common.size() == 1 ? common : ends;
  return {named.begin(), named.end()};
}

void NameStalledLinks(const Situation& situation, Finding& finding) {
  const std::vector<LinkTraffic> stalled = FindStalledLinks(RanksOf(situation));
  if (stalled.empty()) return;
  finding.culprits = CommonEnds(stalled);
  finding.headline = Headline("link {} -> {} does not deliver what rank {} wrote",
                              stalled.front().from, stalled.front().to, stalled.front().from);
  if (stalled.size() > 1) finding.headline.Add("; {} links in all", stalled.size());
  if (finding.operation) {
    finding.headline.Add("; ranks wait for it in " + NameOfInvocation(*finding.operation));
  }
  finding.message += fmt::format("; link {} -> {}: {}", stalled.front().from, stalled.front().to,
                                 DescribeStalled(stalled));
  finding.remedy = fmt::format(
      "See the network between the hosts of rank {} and rank {}: cables, error counters, "
      "firewalls, "
      "MTU; neither rank is at fault.",
      stalled.front().from, stalled.front().to);
}

void NameBrokenLink(const Situation& situation, Finding& finding) {
  const std::optional<std::pair<int, int>> link = FindBrokenLink(RanksOf(situation));
  if (!link) return;
  const auto is_end = [&](int rank) { return rank == link->first || rank == link->second; };
  std::vector<int> others = finding.culprits;
  std::erase_if(others, is_end);
  finding.culprits = {link->first, link->second};
  finding.headline = Headline(
      "the link {} - {} broke: ranks {} and {} were both alive when their connection ended",
      link->first, link->second, link->first, link->second);
  finding.message += fmt::format(
      "; ranks {} and {} were both alive when their connection ended: the link {} - {} broke",
      link->first, link->second, link->first, link->second);
  if (!others.empty()) {
    finding.message += fmt::format("; {} failed because of that", FormatRanks(others));
  }
  finding.remedy = fmt::format(
      "See what ends connections between the hosts of rank {} and rank {}: a firewall or NAT that "
      "forgets them, an interface that went down, a process that was told to close them.",
      link->first, link->second);
}

}  // namespace lockstep::verdict
