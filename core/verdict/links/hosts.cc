// Clocks of two hosts are brought together by what both directions of their connections took.
// Findings about links are told as findings about the network between hosts.
#include "core/verdict/links/hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/verdict/link_traffic.h"
#include "core/verdict/links/slow_link.h"
#include "core/verdict/links/transit.h"

namespace lockstep::verdict::links {
namespace {

using HostPair = std::pair<std::string, std::string>;

class HostNames {
 public:
  HostNames(const std::vector<RankHost>& hosts, const std::vector<LinkTraffic>& links)
      : hosts_(hosts) {
    for (const LinkTraffic& link : links) {
      ends_.insert({link.from, link.to});
      directions_.insert({NameOf(link.from), NameOf(link.to)});
      pairs_.insert(std::minmax({NameOf(link.from), NameOf(link.to)}));
    }
  }

  // A link inside of a host is of no network.
  bool all_between_hosts() const {
    return !pairs_.empty() && std::ranges::none_of(pairs_, [](const HostPair& pair) {
      return pair.first == pair.second;
    });
  }

  void Name(Finding& finding) const {
    if (pairs_.size() == 1) {
      const auto& [from, to] = *directions_.begin();
      finding.culprits = {ends_.begin(), ends_.end()};
      finding.headline.Add("; between hosts {} and {}", from, to);
      finding.message += fmt::format(
          "; this is the network between hosts {} and {} ({})", from, to,
          directions_.size() > 1 ? "both directions" : fmt::format("{} -> {}", from, to));
      return;
    }
    for (const std::string& host : {pairs_.begin()->first, pairs_.begin()->second}) {
      const bool in_all = std::ranges::all_of(
          pairs_, [&](const HostPair& pair) { return pair.first == host || pair.second == host; });
      if (!in_all) continue;
      finding.culprits.clear();
      for (const int end : ends_) {
        if (NameOf(end) == host) finding.culprits.push_back(end);
      }
      finding.message += fmt::format("; all of these links are of host {}", host);
      finding.headline.Add("; all of these links are of host {}", host);
      return;
    }
    finding.message += fmt::format("; these links are between {} pairs of hosts", pairs_.size());
  }

 private:
  const std::string& NameOf(int rank) const { return hosts_[static_cast<std::size_t>(rank)].name; }

  const std::vector<RankHost>& hosts_;
  std::set<int> ends_;
  std::set<HostPair> directions_;
  std::set<HostPair> pairs_;
};

// Ranks that had a connection and have none, although both are there: it broke, and their library
// does not say so.
std::vector<LinkTraffic> VanishedLinks(const Ranks& ranks) {
  std::set<std::pair<int, int>> open;
  for (const LinkTraffic& link : TrafficOf(ranks)) open.insert({link.from, link.to});
  std::vector<LinkTraffic> links;
  for (const LinkTraffic& link : TrafficOf(ranks, true)) {
    const auto alive = [&](int rank) {
      return ranks[static_cast<std::size_t>(rank)]->state == ProcessState::kRunning;
    };
    const bool both = alive(link.from) && alive(link.to);
    if (both && !open.contains({link.from, link.to})) links.push_back(link);
  }
  return links;
}

// From a rank that asks for a connection to the one that listens there and knows of none. Whose
// kernel answered, or has others wait, is reached: its process does not accept.
std::vector<LinkTraffic> UnansweredLinks(const std::vector<RankEvidence>& evidence) {
  std::map<std::string_view, int> listeners;
  std::set<std::pair<std::string_view, std::string_view>> ends;
  for (const RankEvidence& rank : evidence) {
    for (const TcpSocket& socket : rank.sockets) {
      if (socket.closed) continue;
      if (socket.remote.empty() && socket.unread == 0) listeners[socket.local] = rank.rank;
      ends.insert({socket.local, socket.remote});
    }
  }
  std::vector<LinkTraffic> links;
  for (const RankEvidence& rank : evidence) {
    for (const TcpSocket& socket : rank.sockets) {
      const auto listener = listeners.find(socket.remote);
      if (socket.closed || socket.remote.empty() || listener == listeners.end()) continue;
      if (socket.round_trip_us > 0 || socket.relayed) continue;
      if (listener->second == rank.rank || ends.contains({socket.remote, socket.local})) continue;
      links.push_back({.from = rank.rank, .to = listener->second});
    }
  }
  return links;
}

// Mean time on the way by the clocks of both ends, whatever they show; none: it is not known.
std::optional<double> TransitOf(const LinkTraffic& link) {
  const std::vector<Passage> passages = PassagesOf(*link.writer, *link.reader);
  if (passages.empty()) return std::nullopt;
  double sum_s = 0;
  for (const Passage& passage : passages) sum_s += passage.middle_s;
  return sum_s / static_cast<double>(passages.size());
}

}  // namespace

void AlignClocks(const std::vector<RankHost>& hosts, std::vector<RankEvidence>& evidence) {
  if (hosts.size() != evidence.size()) return;
  std::map<std::pair<int, int>, double> transit;
  for (const LinkTraffic& link : TrafficOf(PointersTo(evidence), true)) {
    if (const auto transit_s = TransitOf(link)) transit[{link.from, link.to}] = *transit_s;
  }
  std::map<std::string_view, int> owners;
  for (const RankEvidence& rank : evidence) {
    for (const TcpSocket& socket : rank.sockets) owners[socket.local] = rank.rank;
  }
  for (RankEvidence& rank : evidence) {
    for (TcpSocket& socket : rank.sockets) {
      const auto peer = owners.find(socket.remote);
      if (peer == owners.end() || peer->second >= rank.rank) continue;  // one end of each
      const auto clock = [&](int of) { return hosts[static_cast<std::size_t>(of)].clock; };
      if (clock(peer->second) == clock(rank.rank)) continue;
      const auto here = transit.find({peer->second, rank.rank});
      const auto back = transit.find({rank.rank, peer->second});
      if (here == transit.end() || back == transit.end()) {
        // Nothing can be said of how long bytes were on the way.
        socket.written_steps.clear();
        socket.received_steps.clear();
        continue;
      }
      socket.clock_ahead_s += (here->second - back->second) / 2;
    }
  }
}

void NameHosts(const std::vector<RankEvidence>& evidence, const std::vector<RankHost>& hosts,
               Judgement& judgement) {
  if (hosts.size() != evidence.size()) return;
  const Ranks ranks = PointersTo(evidence);
  for (Finding& finding : judgement.findings) {
    std::vector<LinkTraffic> links;
    if (finding.cause == Cause::kTransportStall || finding.cause == Cause::kInitFailure) {
      links = FindStalledLinks(ranks);
      if (links.empty() && finding.cause == Cause::kInitFailure) links = UnansweredLinks(evidence);
      if (links.empty() && finding.cause == Cause::kTransportStall) links = VanishedLinks(ranks);
    } else if (finding.cause == Cause::kSlowLink) {
      links = SlowLinks(ranks);
    } else if (finding.cause == Cause::kRankFailed) {
      links = FindBrokenLinks(ranks);
    }
    const HostNames names(hosts, links);
    if (names.all_between_hosts()) names.Name(finding);
  }
}

}  // namespace lockstep::verdict::links
