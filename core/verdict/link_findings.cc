// What the sockets of the ranks add to a finding: the link that it is about.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/verdict/findings.h"
#include "core/verdict/links.h"
#include "core/verdict/wording.h"

namespace lockstep {
namespace {

// Fewer say nothing of a habit.
constexpr std::uint32_t kFewestArrivals = 8;
// A busy machine lets a process wait for its processor so long, us and the ranks.
constexpr double kLeastSlowSeconds = 0.008;
constexpr double kTimesUsual = 4;
constexpr double kTimesReading = 4;
// Our looks at a busy machine are late; its kernels time what they send themselves, and count what
// they lose. A way there and back is at least as long as the way there.
constexpr double kLeastShareOfTransit = 0.5;
constexpr std::uint32_t kRetransmitsOfLoss = 5;
// What is lost is sent again within milliseconds where much else is on the way: then the loss is
// seen, and no delay. A segment holds so many bytes at most (RFC 1191: of 1500 without headers).
constexpr double kLossyShare = 0.03;
constexpr double kSegmentBytes = 1448;

Ranks RanksOf(const Situation& situation) {
  Ranks ranks;
  for (const RankView& view : situation.views) ranks.push_back(view.evidence);
  return ranks;
}

// Those that tell something of a habit, the slowest last.
std::vector<LinkTraffic> WatchedLinks(const Ranks& evidence) {
  std::vector<LinkTraffic> links = TrafficOf(evidence, true);
  std::erase_if(links, [](const LinkTraffic& link) {
    return !link.transit_s || link.arrivals < kFewestArrivals;
  });
  std::sort(links.begin(), links.end(),
            [](const auto& a, const auto& b) { return *a.transit_s < *b.transit_s; });
  return links;
}

// All links of one rank of four are half of all: still, a quarter are others. Where none is, as
// between two hosts, the links themselves were better once.
double UsualTransit(const std::vector<LinkTraffic>& sorted) {
  double usual_s = std::max(0.0, *sorted[(sorted.size() - 1) / 4].transit_s);
  for (const LinkTraffic& link : sorted) {
    if (link.least_round_trip_s > 0) usual_s = std::min(usual_s, link.least_round_trip_s);
  }
  return usual_s;
}

// On a busy machine all readers take their time.
double UsualReading(const std::vector<LinkTraffic>& links) {
  std::vector<double> times;
  for (const LinkTraffic& link : links) times.push_back(link.reading_s);
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) / 2];
}

bool KernelsAgree(const LinkTraffic& link, double usual_reading_s) {
  if (link.round_trip_s == 0) {  // they were not asked
    return *link.transit_s >= kTimesReading * (link.reading_s - usual_reading_s);
  }
  return link.retransmits >= kRetransmitsOfLoss ||
         link.round_trip_s >= kLeastShareOfTransit * *link.transit_s;
}

bool Loses(const LinkTraffic& link) {
  const double segments = std::max(static_cast<double>(link.arrivals),
                                   static_cast<double>(link.received) / kSegmentBytes);
  return link.retransmits >= kRetransmitsOfLoss && link.retransmits >= kLossyShare * segments;
}

// The rank that several links have in common, else the ends of all of them.
std::vector<int> CommonEnds(const std::vector<LinkTraffic>& links) {
  std::set<std::pair<int, int>> pairs;
  std::set<int> ends, common;
  for (const LinkTraffic& link : links) pairs.insert(std::minmax({link.from, link.to}));
  for (const auto& [one, other] : pairs) ends.insert({one, other});
  for (const int end : ends) {
    const bool in_all = std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
      return pair.first == end || pair.second == end;
    });
    if (in_all) common.insert(end);
  }
  const std::set<int>& named = common.size() == 1 ? common : ends;
  return {named.begin(), named.end()};
}

}  // namespace

void NameStalledLinks(const Situation& situation, Finding& finding) {
  const std::vector<LinkTraffic> stalled = FindStalledLinks(RanksOf(situation));
  if (stalled.empty()) return;
  finding.culprits = CommonEnds(stalled);
  finding.message += fmt::format("; link {} -> {}: {}", stalled.front().from, stalled.front().to,
                                 DescribeStalled(stalled));
  finding.remedy = fmt::format(
      "See the network between the hosts of rank {} and rank {}: cables, error counters, "
      "firewalls, "
      "MTU; neither rank is at fault.",
      stalled.front().from, stalled.front().to);
}

std::vector<LinkTraffic> SlowLinks(const Ranks& evidence) {
  std::vector<LinkTraffic> links = WatchedLinks(evidence);
  if (links.size() < 2) return {};
  const double usual_s = UsualTransit(links);
  const double usual_reading_s = UsualReading(links);
  const double limit_s = std::max(kLeastSlowSeconds, kTimesUsual * usual_s);
  std::erase_if(links, [&](const LinkTraffic& link) {
    const bool slow = *link.transit_s >= limit_s && KernelsAgree(link, usual_reading_s);
    return !slow && !Loses(link);
  });
  return links;
}

std::vector<Finding> FindSlowLinks(const Ranks& evidence) {
  const std::vector<LinkTraffic> links = SlowLinks(evidence);
  if (links.empty()) return {};
  const double usual_s = UsualTransit(WatchedLinks(evidence));
  const LinkTraffic& worst = links.back();
  Finding finding;
  finding.cause = "slow_link";
  finding.culprits = CommonEnds(links);
  finding.proved = true;
  finding.message = fmt::format(
      "link {} -> {}: bytes are on the way for {:.1f} ms on average, {:.2f} ms on most links of "
      "this run; {} of {} bytes arrived, in {} or more portions",
      worst.from, worst.to, *worst.transit_s * 1e3, usual_s * 1e3, worst.received, worst.written,
      worst.arrivals);
  if (worst.retransmits > 0) {
    finding.message += fmt::format("; {} segments were sent again", worst.retransmits);
  }
  if (links.size() > 1) {
    const LinkTraffic& next = links[links.size() - 2];
    finding.message +=
        fmt::format("; link {} -> {} {:.1f} ms", next.from, next.to, *next.transit_s * 1e3);
    if (links.size() > 2) finding.message += fmt::format(", and {} more", links.size() - 2);
  }
  finding.remedy = fmt::format(
      "Measure latency, rate and loss between the hosts of rank {} and rank {} (ping, iperf, "
      "ethtool -S), and compare the route and the speed of their interfaces with those of others.",
      worst.from, worst.to);
  return {finding};
}

void NameBrokenLink(const Situation& situation, Finding& finding) {
  const std::optional<std::pair<int, int>> link = FindBrokenLink(RanksOf(situation));
  if (!link) return;
  const auto is_end = [&](int rank) { return rank == link->first || rank == link->second; };
  std::vector<int> others;
  for (const int rank : finding.culprits) {
    if (!is_end(rank)) others.push_back(rank);
  }
  finding.culprits = {link->first, link->second};
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

}  // namespace lockstep
