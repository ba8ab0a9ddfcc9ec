// What the sockets of the ranks add to a finding: the link that it is about.
#include "core/verdict/link_findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/verdict/wording.h"

namespace lockstep::verdict {
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
  std::vector<int> others;
  for (const int rank : finding.culprits) {
    if (!is_end(rank)) others.push_back(rank);
  }
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
