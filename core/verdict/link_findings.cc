// What the sockets of the ranks add to a finding: the link that it is about.
#include <fmt/format.h>

#include <algorithm>

#include "core/verdict/findings.h"
#include "core/verdict/links.h"
#include "core/verdict/wording.h"

namespace lockstep {
namespace {

Ranks RanksOf(const Situation& situation) {
  Ranks ranks;
  for (const RankView& view : situation.views) ranks.push_back(view.evidence);
  return ranks;
}

}  // namespace

void NameStalledLinks(const Situation& situation, Finding& finding) {
  const std::vector<LinkTraffic> stalled = FindStalledLinks(RanksOf(situation));
  if (stalled.empty()) return;
  std::vector<int> ends;
  for (const LinkTraffic& link : stalled) {
    ends.push_back(link.from);
    ends.push_back(link.to);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  finding.culprits = std::move(ends);
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
  std::vector<int> others;
  for (const int rank : finding.culprits) {
    if (!is_end(rank)) others.push_back(rank);
  }
  finding.culprits = {link->first, link->second};
  finding.message += fmt::format(
      "; ranks {} and {} were both alive and each name the other's end of their connection: the "
      "link {} - {} broke",
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
